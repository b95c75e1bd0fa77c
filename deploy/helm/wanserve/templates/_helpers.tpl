{{- define "wanserve.name" -}}
{{- $name := ternary .Release.Name (printf "%s-wanserve" .Release.Name) (contains "wanserve" .Release.Name) -}}
{{- $name | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{- define "wanserve.selector" -}}
app.kubernetes.io/name: wanserve
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wanserve.labels" -}}
{{ include "wanserve.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{/* The profile of the card as a dictionary; empty without one. */}}
{{- define "wanserve.profile" -}}
{{- if .Values.profile -}}
{{- $text := .Files.Get (printf "files/profiles/%s.yaml" .Values.profile) -}}
{{- if not $text }}{{ fail (printf "profile is '%s'; must be one of h200-141, h100-80, a100-80, a6000-48, l40s-48, a100-40, rtx4090-24, or empty for a CPU" .Values.profile) }}{{ end -}}
{{- $text -}}
{{- else -}}
{device: cpu}
{{- end -}}
{{- end }}

{{/* All settings of the server. */}}
{{- define "wanserve.settings" -}}
{{- $settings := include "wanserve.profile" . | fromYaml -}}
{{- $_ := set $settings "listen" (ternary "127.0.0.1:50051" "0.0.0.0:50051" .Values.envoy.enabled) -}}
{{- $_ := set $settings "metrics_listen" "0.0.0.0:9464" -}}
{{- $_ := set $settings "data_dir" "/var/lib/wanserve" -}}
{{- $_ := set $settings "shutdown_mode" .Values.shutdown.mode -}}
{{- $_ := set $settings "shutdown_grace_seconds" (include "wanserve.grace" . | float64) -}}
{{- if .Values.admin.enabled }}{{ $_ := set $settings "admin_listen" (printf "0.0.0.0:%v" .Values.admin.port) }}{{ end -}}
{{- if .Values.http.enabled }}{{ $_ := set $settings "http_listen" (printf "0.0.0.0:%v" .Values.http.port) }}{{ end -}}
{{- if .Values.models -}}
{{- $models := dict -}}
{{- range .Values.models }}{{ $_ := set $models .name (printf "/models/%s" .folder) }}{{ end -}}
{{- $_ := set $settings "models" $models -}}
{{- $_ := set $settings "model_roots" (list "/models") -}}
{{- end -}}
{{- if .Values.persistence.loras.enabled -}}
{{- $_ := set $settings "model_roots" (append ($settings.model_roots | default list) "/loras") -}}
{{- end -}}
{{- $loras := dict -}}
{{- range $model := .Values.models -}}
{{- range $name, $path := $model.loras }}{{ $_ := set $loras (printf "%s/%s" $model.name $name) (printf "/loras/%s" $path) }}{{ end -}}
{{- end -}}
{{- if $loras -}}
{{- if not .Values.persistence.loras.enabled }}{{ fail "models[].loras needs persistence.loras.enabled, the volume in which the files lie" }}{{ end -}}
{{- $_ := set $settings "loras" $loras -}}
{{- end -}}
{{- if .Values.auth.insecure -}}
{{- $_ := set $settings "insecure" true -}}
{{- else if .Values.auth.existingSecret -}}
{{- $_ := set $settings "auth_tokens" "/etc/wanserve-auth/tokens" -}}
{{- else if not .Values.tls.clientCa -}}
{{- fail "nobody could be let in: set auth.existingSecret, tls.clientCa or auth.insecure" -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $settings "tls_cert" "/etc/wanserve-tls/tls.crt" -}}
{{- $_ := set $settings "tls_key" "/etc/wanserve-tls/tls.key" -}}
{{- if .Values.tls.clientCa }}{{ $_ := set $settings "tls_client_ca" "/etc/wanserve-tls/ca.crt" }}{{ end -}}
{{- else if .Values.tls.clientCa -}}
{{- fail "tls.clientCa needs tls.existingSecret" -}}
{{- end -}}
{{- if .Values.webhooks.hosts -}}
{{- $_ := set $settings "webhook_hosts" .Values.webhooks.hosts -}}
{{- $_ := set $settings "webhook_secret" (ternary "/etc/wanserve-webhooks/secret" "" (ne .Values.webhooks.existingSecret "")) -}}
{{- if not .Values.webhooks.existingSecret }}{{ fail "webhooks.hosts needs webhooks.existingSecret, whose key 'secret' signs the reports" }}{{ end -}}
{{- end -}}
{{- if .Values.tracing.endpoint -}}
{{- $_ := set $settings "otlp_endpoint" .Values.tracing.endpoint -}}
{{- if .Values.tracing.existingSecret }}{{ $_ := set $settings "otlp_headers" "/etc/wanserve-tracing/headers" }}{{ end -}}
{{- else if .Values.tracing.existingSecret -}}
{{- fail "tracing.existingSecret needs tracing.endpoint, to which its headers are sent" -}}
{{- end -}}
{{- mergeOverwrite $settings .Values.settings | toYaml -}}
{{- end }}

{{/* The port on which callers reach gRPC. A number for the sidecar, whose ports not every release finds by name. */}}
{{- define "wanserve.grpcPort" -}}
{{- if .Values.envoy.enabled }}50061{{ else }}grpc{{ end -}}
{{- end }}

{{- define "wanserve.onGpu" -}}
{{- if ne ((include "wanserve.settings" . | fromYaml).device) "cpu" }}yes{{ end -}}
{{- end }}

{{- define "wanserve.image" -}}
{{- $flavour := ternary "cuda" "cpu" (eq (include "wanserve.onGpu" .) "yes") -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "%s-%s" .Chart.AppVersion $flavour) }}
{{- end }}

{{/* The largest number that a table, which has one for each profile and checkpoint, has for the models that are served. */}}
{{- define "wanserve.mostOfModels" -}}
{{- $ofCard := get (.root.Files.Get .table | fromYaml) (.root.Values.profile | default "cpu") -}}
{{- $most := get $ofCard "none" -}}
{{- range .root.Values.models -}}
{{- $kind := .checkpoint | default "unknown" -}}
{{- $most = max $most (get $ofCard $kind | default (get $ofCard "unknown")) -}}
{{- end -}}
{{ $most }}
{{- end }}

{{/* GiB of memory: files/memory.yaml has what the planner says for each profile and kind of model. */}}
{{- define "wanserve.memory" -}}
{{- if ne (toString .Values.resources.memory) "auto" -}}
{{ .Values.resources.memory }}
{{- else -}}
{{ include "wanserve.mostOfModels" (dict "root" . "table" "files/memory.yaml") }}Gi
{{- end -}}
{{- end }}

{{/* Seconds that the running job may go on when the pod stops. */}}
{{- define "wanserve.grace" -}}
{{- if ne (toString .Values.shutdown.graceSeconds) "auto" -}}
{{ .Values.shutdown.graceSeconds }}
{{- else if eq .Values.shutdown.mode "requeue" -}}
25
{{- else if ne (toString .Values.shutdown.longestJobSeconds) "auto" -}}
{{ .Values.shutdown.longestJobSeconds }}
{{- else -}}
{{ include "wanserve.mostOfModels" (dict "root" . "table" "files/job_seconds.yaml") }}
{{- end -}}
{{- end }}

{{- define "wanserve.claim" -}}
{{- $part := index .root.Values.persistence .part -}}
{{ $part.existingClaim | default (printf "%s-%s" (include "wanserve.name" .root) .part) }}
{{- end }}

{{/* The text of a model's list of files; empty if nothing is to be downloaded. */}}
{{- define "wanserve.list" -}}
{{- if .model.list -}}
{{ .model.list }}
{{- else if .model.checkpoint -}}
{{- $text := .root.Files.Get (printf "files/models/%s.txt" .model.checkpoint) -}}
{{- if not $text }}{{ fail (printf "models: checkpoint is '%s'; must be ti2v-5b, t2v-a14b, i2v-a14b or wan2.1-t2v-1.3b" .model.checkpoint) }}{{ end -}}
{{ $text }}
{{- end -}}
{{- end }}

{{- define "wanserve.downloads" -}}
{{- if .Values.download.enabled -}}
{{- if has "ReadWriteOncePod" .Values.persistence.models.accessModes }}{{ fail "persistence.models.accessModes: the download Job and the server use the volume together, so it cannot be ReadWriteOncePod" }}{{ end -}}
{{- range .Values.models -}}
{{- if include "wanserve.list" (dict "root" $ "model" .) }}yes{{ end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "wanserve.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "wanserve.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "wanserve.placement" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A probe: over HTTP, or where callers must show certificates, which the kubelet has not, with wanctl. */}}
{{- define "wanserve.probe" -}}
{{- if .root.Values.tls.clientCa -}}
exec:
  command:
    - wanctl
    - --server={{ required "tls.clientCa needs tls.serverName, with which the probes call the server" .root.Values.tls.serverName }}:50051
    - --tls-ca=/etc/wanserve-tls/ca.crt
    - --tls-cert=/etc/wanserve-probe/tls.crt
    - --tls-key=/etc/wanserve-probe/tls.key
    - health
    {{- if .liveness }}
    - --service=liveness
    {{- end }}
{{- else -}}
httpGet:
  path: {{ ternary "/livez" "/readyz" .liveness }}
  port: metrics
  scheme: {{ ternary "HTTPS" "HTTP" (ne .root.Values.tls.existingSecret "") }}
{{- end }}
{{ toYaml .settings }}
{{- end }}
