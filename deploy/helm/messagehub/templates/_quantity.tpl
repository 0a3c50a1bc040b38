{{/* The bytes of a quantity of memory, such as 512Mi, 1.5G or 1073741824. */}}
{{- define "messagehub.bytes" -}}
{{- $text := ternary (printf "%.0f" (float64 .)) (toString .) (kindIs "float64" .) -}}
{{- $number := regexFind "^[0-9.]+" $text -}}
{{- $unit := trimPrefix $number $text | default "B" -}}
{{- $factors := dict "B" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 -}}
{{- mulf (float64 $number) (get $factors $unit) | int64 -}}
{{- end -}}

{{/* A tenth of the limit is left for what the Go runtime does not count. */}}
{{- define "messagehub.goMemoryLimit" -}}
{{- with ((.Values.resources).limits).memory -}}
{{- mulf (float64 (include "messagehub.bytes" .)) 0.9 | int64 -}}
{{- end -}}
{{- end -}}

{{/* The millicores of a quantity of CPU, such as 250m, 0.5 or 2. */}}
{{- define "messagehub.millicores" -}}
{{- $text := toString . -}}
{{- if hasSuffix "m" $text -}}
{{- trimSuffix "m" $text | int64 -}}
{{- else -}}
{{- mulf (float64 $text) 1000 | int64 -}}
{{- end -}}
{{- end -}}
