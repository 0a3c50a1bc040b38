{{/* The template of the pod: the same for the Deployment and the StatefulSet. */}}
{{- define "messagehub.pod" -}}
{{- $fullname := include "messagehub.fullname" . -}}
{{- $secrets := .Values.secrets -}}
metadata:
  annotations:
    checksum/settings: {{ include "messagehub.settingsChecksum" . }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  labels:
    {{- include "messagehub.selector" . | nindent 4 }}
    {{- include "messagehub.chartLabels" . | nindent 4 }}
    {{- if eq (include "messagehub.identity" .) "workload" }}
    azure.workload.identity/use: "true"
    {{- end }}
    {{- with merge (deepCopy .Values.podLabels) .Values.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "messagehub.serviceAccountName" . }}
  # The hub never calls the API of the cluster. Workload identity has a token of its own.
  automountServiceAccountToken: false
  # Or the cluster sets variables such as MESSAGEHUB_PORT, which the hub refuses as unknown settings.
  enableServiceLinks: false
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "messagehub.podSecurity" . | nindent 4 }}
  terminationGracePeriodSeconds: {{ include "messagehub.gracePeriod" . }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if and (eq .Values.mode "azure") .Values.topologySpread.enabled }}
  topologySpreadConstraints:
    {{- range $topology := list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ $topology }}
      whenUnsatisfiable: {{ $.Values.topologySpread.whenUnsatisfiable }}
      labelSelector:
        matchLabels:
          {{- include "messagehub.selector" $ | nindent 10 }}
      # So that pods of the version before do not count while they are replaced.
      matchLabelKeys:
        - pod-template-hash
    {{- end }}
  {{- end }}
  containers:
    - name: hub
      image: {{ include "messagehub.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
        - serve
      env:
        {{- include "messagehub.environment" . | trim | nindent 8 }}
      ports:
        - name: http
          containerPort: 8080
        - name: admin
          containerPort: 8081
        {{- if $secrets.busKey.name }}
        - name: bus
          containerPort: 5671
        {{- end }}
        {{- if $secrets.exchangeKey.name }}
        - name: exchange
          containerPort: 10000
        {{- end }}
      # All are at the port of operators: it answers while the other one has all the connections that it may have.
      startupProbe:
        {{- include "messagehub.probe" (dict "root" . "path" "/healthz") | nindent 8 }}
        periodSeconds: 2
        failureThreshold: {{ div (add (int .Values.probes.startupSeconds) 1) 2 }}
      # Without what the hub depends on: a restart would not help Cosmos DB.
      livenessProbe:
        {{- include "messagehub.probe" (dict "root" . "path" "/healthz") | nindent 8 }}
        periodSeconds: 10
        failureThreshold: 6
      readinessProbe:
        {{- include "messagehub.probe" (dict "root" . "path" "/readyz") | nindent 8 }}
        periodSeconds: 5
        failureThreshold: 2
      lifecycle:
        preStop:
          # Until load balancers know that it stops; after it, SIGTERM closes the ports.
          sleep:
            seconds: {{ int64 .Values.drain.preStopSeconds }}
      {{- with .Values.resources }}
      resources:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        {{- include "messagehub.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - name: config
          mountPath: /etc/messagehub/config
          readOnly: true
        {{- if include "messagehub.secretFiles" . | trim }}
        - name: secrets
          mountPath: /etc/messagehub/secrets
          readOnly: true
        {{- end }}
        {{- if .Values.tls.secretName }}
        - name: tls
          mountPath: /etc/messagehub/tls
          readOnly: true
        {{- end }}
        - name: data
          mountPath: /data
        # Inventories of buckets are sorted here.
        - name: tmp
          mountPath: /tmp
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ $fullname }}
    {{- if include "messagehub.secretFiles" . | trim }}
    - name: secrets
      projected:
        defaultMode: 288 # 0440: the hub warns of files that others may read
        sources:
          {{- range $secret := list
            (list $secrets.adminToken "admin-token")
            (list $secrets.pushSecretKey "push-secret-key")
            (list $secrets.consoleClientSecret "console-client-secret")
            (list $secrets.consoleSessionKey "console-session-key")
            (list $secrets.cosmosKey "cosmos-key")
            (list $secrets.serviceBusConnection "servicebus-connection")
            (list $secrets.blobKey "blob-key") }}
          {{- with index $secret 0 }}
          {{- if .name }}
          - secret:
              name: {{ .name }}
              items:
                - key: {{ .key }}
                  path: {{ index $secret 1 }}
          {{- end }}
          {{- end }}
          {{- end }}
    {{- end }}
    {{- if .Values.tls.secretName }}
    - name: tls
      secret:
        secretName: {{ .Values.tls.secretName }}
        defaultMode: 288 # 0440
    {{- end }}
    - name: tmp
      emptyDir:
        sizeLimit: {{ .Values.temporary.size }}
    {{- if eq .Values.mode "azure" }}
    # It holds a token of operators if the values configure none, and nothing else.
    - name: data
      emptyDir:
        sizeLimit: 16Mi
    {{- else if .Values.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.persistence.existingClaim }}
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{- define "messagehub.environment" -}}
# A variable, so that commands which operators run in the pod have the settings of the hub.
- name: MESSAGEHUB_CONFIG
  value: /etc/messagehub/config/messagehub.yaml
# An image may set this one, and the environment wins over the file.
- name: MESSAGEHUB_DATA
  value: {{ include "messagehub.dataFolder" . }}
{{ with include "messagehub.goMemoryLimit" . -}}
- name: GOMEMLIMIT
  value: {{ . | quote }}
{{ end -}}
{{- if eq (include "messagehub.identity" .) "workload" -}}
- name: AZURE_TOKEN_CREDENTIALS
  value: WorkloadIdentityCredential
{{ end -}}
{{- range $name, $secret := dict "MESSAGEHUB_BUS_KEY" .Values.secrets.busKey "MESSAGEHUB_EXCHANGE_KEY" .Values.secrets.exchangeKey -}}
{{- if $secret.name -}}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $secret.name }}
      key: {{ $secret.key }}
{{ end -}}
{{- end -}}
{{- with .Values.extraEnv -}}
{{ toYaml . }}
{{- end -}}
{{- end -}}

{{- define "messagehub.probe" -}}
httpGet:
  path: {{ .path }}
  port: admin
  scheme: {{ include "messagehub.scheme" .root | upper }}
timeoutSeconds: 3
{{- end -}}

{{/* The hub has 25 s for requests under way, and then closes what it has open. */}}
{{- define "messagehub.leastGracePeriod" -}}
{{- add (int .Values.drain.preStopSeconds) 25 10 -}}
{{- end -}}

{{- define "messagehub.gracePeriod" -}}
{{- default (include "messagehub.leastGracePeriod" .) .Values.drain.terminationGracePeriodSeconds | int64 -}}
{{- end -}}

{{- define "messagehub.podSecurity" -}}
runAsNonRoot: true
{{- with .Values.security.runAsUser }}
runAsUser: {{ int64 . }}
{{- end }}
{{- with .Values.security.runAsGroup }}
runAsGroup: {{ int64 . }}
{{- end }}
{{- with .Values.security.fsGroup }}
fsGroup: {{ int64 . }}
# Not Always: that lets the group read the hub's secrets in the volume, and the hub refuses them then.
fsGroupChangePolicy: OnRootMismatch
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "messagehub.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop:
    - ALL
seccompProfile:
  type: RuntimeDefault
{{- end -}}
