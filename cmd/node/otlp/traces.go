package otlp

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options configure Open. The zero value turns tracing off.
type Options struct {
	Environ    []string // variables of the process, as NAME=VALUE
	Version    string   // version of the program
	Logger     *slog.Logger
	Registerer prometheus.Registerer

	// Transport, Clock, Sleep and Random replace the network, the time and the
	// source of random numbers.
	Transport http.RoundTripper
	Clock     func() time.Time
	Sleep     func(ctx context.Context, d time.Duration)
	Random    func() float64
}

// A Traces records and sends the spans of a process. A nil *Traces records
// nothing.
type Traces struct {
	provider *sdktrace.TracerProvider
	client   *client
	logger   *slog.Logger
}

// Open returns a Traces if the environment enables tracing; otherwise nil. Its
// error names a variable and its valid values. The caller must call Close.
func Open(ctx context.Context, opts Options) (*Traces, error) {
	env := newEnvironment(opts.Environ)
	if !env.isOn() {
		return nil, nil //nolint:nilnil // none exist
	}
	s, err := env.settings()
	if err != nil {
		return nil, err
	}
	opts.setDefaults()
	if opts.Transport == nil {
		if opts.Transport, err = s.transport(); err != nil {
			return nil, err
		}
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c := &client{
		settings: s, metrics: newMetrics(opts.Registerer), logger: opts.Logger, clock: opts.Clock, sleep: opts.Sleep, random: opts.Random, life: life, end: end,
		http: &http.Client{
			Transport:     opts.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // a redirect would send the secret headers to another host
		},
	}
	exporter, err := otlptrace.New(ctx, c)
	if err != nil {
		end()
		return nil, err
	}
	sampler, err := s.sampler.newSampler()
	if err != nil {
		end()
		return nil, err
	}
	q := &spanQueue{limit: int64(s.queueSize), metrics: c.metrics}
	q.SpanProcessor = sdktrace.NewBatchSpanProcessor(&queueExporter{exporter, q},
		sdktrace.WithMaxQueueSize(s.queueSize), sdktrace.WithMaxExportBatchSize(s.batchSize),
		sdktrace.WithBatchTimeout(s.scheduleDelay), sdktrace.WithExportTimeout(s.exportTimeout))
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(q), sdktrace.WithSampler(sampler), sdktrace.WithResource(s.resource(opts.Version)))
	opts.Logger.LogAttrs(ctx, slog.LevelInfo, "traces are sent", slog.String("receiver", s.endpoint.Host), slog.String("sampler", s.sampler.name))
	return &Traces{provider, c, opts.Logger}, nil
}

func (o *Options) setDefaults() {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Sleep == nil {
		o.Sleep = func(ctx context.Context, d time.Duration) {
			timer := time.NewTimer(d)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
		}
	}
}

// Provider returns the provider that records spans. It returns nil if tracing
// is off.
func (t *Traces) Provider() trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// Close sends the waiting spans within a time limit, and drops the rest. After
// Close, no goroutine of t runs.
func (t *Traces) Close(ctx context.Context, within time.Duration) {
	if t == nil {
		return
	}
	cutOff := time.AfterFunc(within, t.client.end)
	defer cutOff.Stop()
	defer t.client.end()
	if err := t.provider.Shutdown(context.WithoutCancel(ctx)); err != nil {
		t.logger.LogAttrs(ctx, slog.LevelWarn, "the recording of spans did not end as it should", slog.String("error", err.Error()))
	}
}

// resource describes the process. Attributes in the environment override the
// defaults.
func (s *settings) resource(version string) *resource.Resource {
	attributes := []attribute.KeyValue{attribute.String("service.name", "messagehub")}
	if version != "" {
		attributes = append(attributes, attribute.String("service.version", version))
	}
	if host, err := os.Hostname(); err == nil {
		attributes = append(attributes, attribute.String("host.name", host))
	}
	for _, a := range s.attributes {
		attributes = append(attributes, attribute.String(a.key, a.value)) // if a key occurs several times, the last value counts
	}
	return resource.NewSchemaless(attributes...)
}

// transport returns a transport used only for spans, so that a failing receiver
// does not affect other connections of the hub.
func (s *settings) transport() (http.RoundTripper, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.certificate != "" {
		text, err := os.ReadFile(s.certificate)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CERTIFICATE: %s has no certificate in PEM", s.certificate)
		}
	}
	if (s.clientCert == "") != (s.clientKey == "") {
		return nil, errors.New("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and OTEL_EXPORTER_OTLP_CLIENT_KEY: set both or neither")
	}
	if s.clientCert != "" {
		pair, err := tls.LoadX509KeyPair(s.clientCert, s.clientKey)
		if err != nil {
			return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, TLSHandshakeTimeout: s.timeout,
		MaxIdleConnsPerHost: 1, MaxConnsPerHost: 2, IdleConnTimeout: time.Minute, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxResponse,
	}, nil
}
