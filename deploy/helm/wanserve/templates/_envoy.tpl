{{/* What the sidecar does: HTTP/2 only, within the limits that Envoy's documentation advises for an edge. */}}
{{- define "wanserve.envoy" -}}
{{- if .Values.tls.clientCa }}{{ fail "envoy.enabled ends TLS, so the certificates of tls.clientCa would not reach the server: use tokens (auth.existingSecret)" }}{{ end -}}
static_resources:
  listeners:
    - name: grpc
      address:
        socket_address: {address: "::", port_value: 50061, ipv4_compat: true}
      # What a connection may hold of bytes that the other side does not take.
      per_connection_buffer_limit_bytes: 65536
      filter_chains:
        - transport_socket_connect_timeout: 10s
          {{- if .Values.tls.existingSecret }}
          transport_socket:
            name: envoy.transport_sockets.tls
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext
              common_tls_context:
                alpn_protocols: [h2]
                tls_params: {tls_minimum_protocol_version: TLSv1_2}
                tls_certificate_sds_secret_configs:
                  - name: certificate
                    sds_config:
                      resource_api_version: V3
                      path_config_source: {path: /etc/wanserve/envoy-certificate.yaml}
          {{- end }}
          filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: grpc
                codec_type: HTTP2
                use_remote_address: true
                normalize_path: true
                max_request_headers_kb: 16
                request_headers_timeout: 10s
                # The server sends a heartbeat over each stream of a job, a model or the devices every 15 s. What waits
                # without a word has routes of its own below.
                stream_idle_timeout: 300s
                common_http_protocol_options:
                  idle_timeout: 3600s
                  headers_with_underscores_action: REJECT_REQUEST
                http2_protocol_options:
                  max_concurrent_streams: 100
                  initial_stream_window_size: 1048576
                  initial_connection_window_size: 4194304
                  connection_keepalive: {interval: 20s, timeout: 10s}
                access_log:
                  - name: envoy.access_loggers.stdout
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
                http_filters:
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
                route_config:
                  virtual_hosts:
                    - name: wanserve
                      domains: ["*"]
                      routes:
                        # Without these a call ends after 15 s.
                        - match: {prefix: /wan.v1.Administration/}
                          route: {cluster: wanserve, timeout: 0s, idle_timeout: 0s}
                        - match: {prefix: /wan.v1.ModelManagement/}
                          route: {cluster: wanserve, timeout: 0s, idle_timeout: 0s}
                        - match: {prefix: /grpc.health.v1.Health/}
                          route: {cluster: wanserve, timeout: 0s, idle_timeout: 0s}
                        - match: {prefix: /}
                          route: {cluster: wanserve, timeout: 0s}
  clusters:
    - name: wanserve
      type: STATIC
      connect_timeout: 5s
      per_connection_buffer_limit_bytes: 65536
      circuit_breakers:
        thresholds:
          - {max_connections: 64, max_requests: 16384, max_pending_requests: 1024}
      typed_extension_protocol_options:
        envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
          "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
          explicit_http_config:
            http2_protocol_options: {max_concurrent_streams: 1000}
      {{- if .Values.tls.existingSecret }}
      # The server is in the same pod, so its certificate is not verified.
      transport_socket:
        name: envoy.transport_sockets.tls
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
          common_tls_context: {alpn_protocols: [h2]}
      {{- end }}
      load_assignment:
        cluster_name: wanserve
        endpoints:
          - lb_endpoints:
              - endpoint:
                  address:
                    socket_address: {address: 127.0.0.1, port_value: 50051}
overload_manager:
  resource_monitors:
    - name: envoy.resource_monitors.global_downstream_max_connections
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig
        max_active_downstream_connections: {{ .Values.envoy.maxConnections }}
{{- end }}

{{/* Envoy reads a certificate of a file of its own again when the Secret changes. */}}
{{- define "wanserve.envoyCertificate" -}}
resources:
  - "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret
    name: certificate
    tls_certificate:
      certificate_chain: {filename: /etc/wanserve-tls/tls.crt}
      private_key: {filename: /etc/wanserve-tls/tls.key}
      watched_directory: {path: /etc/wanserve-tls}
{{- end }}
