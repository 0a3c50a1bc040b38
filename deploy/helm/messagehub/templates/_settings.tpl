{{/* The configuration file of the hub: what the values say, and what only the chart can know. */}}
{{- define "messagehub.settings" -}}
{{- $values := .Values -}}
{{- $settings := mustMergeOverwrite (dict "log" (dict "format" "json")) (deepCopy (default dict $values.config)) -}}
{{- $_ := set $settings "listen" ":8080" -}}
{{- $_ = set $settings "admin-listen" ":8081" -}}
{{- $_ = set $settings "data" (include "messagehub.dataFolder" .) -}}
{{- if eq $values.mode "embedded" -}}
{{- $_ = set $settings "bus-listen" (ternary ":5671" "" (ne $values.secrets.busKey.name "")) -}}
{{- $_ = set $settings "blob-listen" (ternary ":10000" "" (ne $values.secrets.exchangeKey.name "")) -}}
{{- end -}}
{{- if not (hasKey $settings "production") -}}
{{- $hasKeys := or $values.secrets.cosmosKey.name $values.secrets.serviceBusConnection.name $values.secrets.blobKey.name -}}
{{- $_ = set $settings "production" (and (eq (include "messagehub.identity" .) "workload") (not $hasKeys)) -}}
{{- end -}}
{{- range $name, $file := include "messagehub.secretFiles" . | fromYaml -}}
{{- $section := index (splitList "." $name) 0 -}}
{{- $key := index (splitList "." $name) 1 -}}
{{- $_ = set $settings $section (set (default dict (get $settings $section)) $key (printf "/etc/messagehub/secrets/%s" $file)) -}}
{{- end -}}
{{- $tls := default dict (get $settings "tls") -}}
{{- if $values.tls.secretName -}}
{{- $_ = set $tls "cert" (printf "/etc/messagehub/tls/%s" $values.tls.certificate) -}}
{{- $_ = set $tls "key" (printf "/etc/messagehub/tls/%s" $values.tls.key) -}}
{{- with $values.tls.clientCA -}}
{{- $_ = set $tls "client-ca" (printf "/etc/messagehub/tls/%s" .) -}}
{{- end -}}
{{- else if and $values.ingress.enabled $values.ingress.tls (not (hasKey $tls "terminated")) -}}
{{- $_ = set $tls "terminated" true -}}
{{- end -}}
{{- if $tls -}}
{{- $_ = set $settings "tls" $tls -}}
{{- end -}}
{{- toYaml $settings -}}
{{- end -}}

{{/* Not the mount itself: its mode is that of the file system, and it may have a lost+found. */}}
{{- define "messagehub.dataFolder" -}}/data/hub{{- end -}}

{{/* The settings that name files with secrets, and the names of these files, for secrets that there are. */}}
{{- define "messagehub.secretFiles" -}}
{{- $secrets := .Values.secrets -}}
{{- if $secrets.adminToken.name }}
admin.token-file: admin-token
{{- end }}
{{- if $secrets.pushSecretKey.name }}
push.secret-key-file: push-secret-key
{{- end }}
{{- if $secrets.consoleClientSecret.name }}
console.client-secret-file: console-client-secret
{{- end }}
{{- if $secrets.consoleSessionKey.name }}
console.session-key-file: console-session-key
{{- end }}
{{- if $secrets.cosmosKey.name }}
cosmos.key-file: cosmos-key
{{- end }}
{{- if $secrets.serviceBusConnection.name }}
servicebus.connection-file: servicebus-connection
{{- end }}
{{- if $secrets.blobKey.name }}
blob.key-file: blob-key
{{- end }}
{{- end -}}

{{/* The registry of actors is read again when the file changes, so it needs no restart. */}}
{{- define "messagehub.settingsChecksum" -}}
{{- omit (include "messagehub.settings" . | fromYaml) "actors" | toJson | sha256sum -}}
{{- end -}}
