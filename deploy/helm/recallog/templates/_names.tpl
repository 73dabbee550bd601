{{- define "recallog.labels" -}}
app.kubernetes.io/name: recallog
app.kubernetes.io/instance: {{ .release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* The Secret's settings that a component has. */}}
{{- define "recallog.secrets" -}}
{{ toYaml (concat .values.secret.settings .settings.secrets | uniq) }}
{{- end }}

{{- /* A value as text. Numbers of a file of values are floating-point numbers, and `quote` makes 1e+06 of a million. */}}
{{- define "recallog.text" -}}
{{ if kindIs "string" . }}{{ quote . }}{{ else }}{{ toJson . | quote }}{{ end }}
{{- end }}
