{{- define "messagehub.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 53 | trimSuffix "-" -}}
{{- end -}}

{{/* Short enough for -headless behind it. */}}
{{- define "messagehub.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 53 | trimSuffix "-" -}}
{{- else if contains (include "messagehub.name" .) .Release.Name -}}
{{- .Release.Name | trunc 53 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "messagehub.name" .) | trunc 53 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "messagehub.selector" -}}
app.kubernetes.io/name: {{ include "messagehub.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: hub
{{- end -}}

{{- define "messagehub.labels" -}}
{{ include "messagehub.selector" . }}
{{ include "messagehub.chartLabels" . }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The labels of an object that no selector may find: those of all objects, and more of its own, in a list of the
     context and of maps, of which the first one wins. */}}
{{- define "messagehub.otherLabels" -}}
{{- $root := first . -}}
app.kubernetes.io/name: {{ include "messagehub.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
{{ include "messagehub.chartLabels" $root }}
{{- $labels := dict -}}
{{- range rest . -}}
{{- $labels = merge $labels (deepCopy .) -}}
{{- end -}}
{{- with merge $labels (deepCopy $root.Values.labels) }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "messagehub.chartLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | trunc 63 | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "messagehub.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "messagehub.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "messagehub.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* workload or none */}}
{{- define "messagehub.identity" -}}
{{- default (ternary "workload" "none" (eq .Values.mode "azure")) .Values.identity.type -}}
{{- end -}}

{{- define "messagehub.scheme" -}}
{{- ternary "https" "http" (ne .Values.tls.secretName "") -}}
{{- end -}}

{{/* The service with the port of operators. */}}
{{- define "messagehub.adminService" -}}
{{- include "messagehub.fullname" . -}}
{{- if ne .Values.service.type "ClusterIP" -}}-admin{{- end -}}
{{- end -}}
