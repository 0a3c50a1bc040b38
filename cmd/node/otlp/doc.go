// Package otlp records spans as the environment says (OTEL_…), and sends them to an OTLP receiver
// over HTTP.
//
// Without a variable that asks for it, [Open] returns nothing and costs nothing. With one,
// the SDK of OpenTelemetry samples and gathers spans, and its exporter writes them in the form of
// OTLP. The requests are made here: the client of OpenTelemetry links gRPC, 7.4 MB of program.
//
// It promises that nothing waits for the receiver. Spans wait in a queue with a limit
// (OTEL_BSP_MAX_QUEUE_SIZE). Those for which there is no room, and those that the receiver did not
// take within OTEL_BSP_EXPORT_TIMEOUT, are dropped and counted, and [Traces.Close] ends within the
// time that it is given. The headers that the requests carry are secrets: no log line and no error
// has them.
//
// It leaves to the edges which spans there are. A failure leaves gaps in traces and nothing else.
package otlp
