"""Items: values under a namespace and a key, which change as events do."""
