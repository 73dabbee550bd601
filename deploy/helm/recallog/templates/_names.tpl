{{- define "recallog.labels" -}}
app.kubernetes.io/name: recallog
app.kubernetes.io/instance: {{ .release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- /* The Secret's settings that a component has. */}}
{{- define "recallog.secrets" -}}
{{ toYaml (concat .values.secret.settings .settings.secrets | uniq) }}
{{- end }}
