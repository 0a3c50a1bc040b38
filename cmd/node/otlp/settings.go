package otlp

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// An environment contains the variables that the OpenTelemetry specification
// defines. An empty value counts as missing.
type environment map[string]string

const prefix = "OTEL_"

// newEnvironment returns the OpenTelemetry variables in environ, which has the
// form of os.Environ.
func newEnvironment(environ []string) environment {
	env := make(environment)
	for _, e := range environ {
		if name, value, _ := strings.Cut(e, "="); strings.HasPrefix(name, prefix) && strings.TrimSpace(value) != "" {
			env[name] = strings.TrimSpace(value)
		}
	}
	return env
}

// A settings contains the parsed variables.
type settings struct {
	endpoint    *url.URL
	headers     map[string]string // secrets
	timeout     time.Duration     // time limit of a request
	gzip        bool
	certificate string // file with the authorities for the receiver's certificate; "" for the system's authorities
	clientCert  string // files of the hub's client certificate and key; "" for none
	clientKey   string

	sampler sampler

	attributes []attributeText // attributes of the OpenTelemetry resource

	queueSize, batchSize         int
	scheduleDelay, exportTimeout time.Duration
}

type attributeText struct{ key, value string }

// isOn reports whether the environment enables tracing.
func (env environment) isOn() bool {
	if strings.EqualFold(env["OTEL_SDK_DISABLED"], "true") {
		return false
	}
	exporter := env["OTEL_TRACES_EXPORTER"]
	return exporter != "" && exporter != "none" ||
		exporter == "" && (env["OTEL_EXPORTER_OTLP_ENDPOINT"] != "" || env["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] != "")
}

// forTraces returns the value and the name of an exporter variable. A variable
// for traces overrides the variable for all signals.
func (env environment) forTraces(what string) (value, name string) {
	name = "OTEL_EXPORTER_OTLP_TRACES_" + what
	if value = env[name]; value != "" {
		return value, name
	}
	name = "OTEL_EXPORTER_OTLP_" + what
	return env[name], name
}

// settings parses the variables. Its error names a variable and its valid
// values, but does not contain the headers.
func (env environment) settings() (*settings, error) {
	s := &settings{timeout: 10 * time.Second, queueSize: 2048, batchSize: 512, scheduleDelay: 5 * time.Second, exportTimeout: 30 * time.Second}
	if exporter := env["OTEL_TRACES_EXPORTER"]; exporter != "" && exporter != "otlp" {
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER: want otlp or none, got %q", exporter)
	}
	if protocol, name := env.forTraces("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s: want http/protobuf, got %q; receivers have a port of its own for it, mostly 4318", name, protocol)
	}
	for _, part := range []func(*settings) error{env.setReceiver, env.setBatches, env.setSampler, env.setResource} {
		if err := part(s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (env environment) setReceiver(s *settings) (err error) {
	endpoint, name := env.forTraces("ENDPOINT")
	if endpoint == "" {
		endpoint = "http://localhost:4318"
	}
	s.endpoint, err = url.Parse(endpoint)
	if err != nil || s.endpoint.Host == "" || s.endpoint.Scheme != "http" && s.endpoint.Scheme != "https" {
		return fmt.Errorf("%s: want a URL such as http://localhost:4318", name) // does not quote the URL, which may contain a password
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" {
		s.endpoint = s.endpoint.JoinPath("v1", "traces")
	}
	headers, name := env.forTraces("HEADERS")
	s.headers = make(map[string]string)
	for i, pair := range splitPairs(headers) {
		key, value, ok := decodePair(pair)
		if !ok || !isToken(key) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("%s: want NAME=VALUE with commas between them, and %%XX for other characters; member %d is none", name, i+1)
		}
		s.headers[key] = value
	}
	compression, name := env.forTraces("COMPRESSION")
	switch compression {
	case "", "none":
	case "gzip":
		s.gzip = true
	default:
		return fmt.Errorf("%s: want gzip or none, got %q", name, compression)
	}
	s.certificate, _ = env.forTraces("CERTIFICATE")
	s.clientCert, _ = env.forTraces("CLIENT_CERTIFICATE")
	s.clientKey, _ = env.forTraces("CLIENT_KEY")
	timeout, name := env.forTraces("TIMEOUT")
	return setMilliseconds(&s.timeout, name, timeout)
}

func (env environment) setBatches(s *settings) error {
	for name, to := range map[string]*int{"OTEL_BSP_MAX_QUEUE_SIZE": &s.queueSize, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": &s.batchSize} {
		const limit = 1_000_000
		if text := env[name]; text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > limit {
				return fmt.Errorf("%s: want a number of spans from 1 to %d, got %q", name, limit, text)
			}
			*to = n
		}
	}
	s.batchSize = min(s.batchSize, s.queueSize)
	if err := setMilliseconds(&s.scheduleDelay, "OTEL_BSP_SCHEDULE_DELAY", env["OTEL_BSP_SCHEDULE_DELAY"]); err != nil {
		return err
	}
	return setMilliseconds(&s.exportTimeout, "OTEL_BSP_EXPORT_TIMEOUT", env["OTEL_BSP_EXPORT_TIMEOUT"])
}

func setMilliseconds(to *time.Duration, name, text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("%s: want a number of milliseconds, at least 1, got %q", name, text)
	}
	*to = time.Duration(n) * time.Millisecond
	return nil
}

func (env environment) setResource(s *settings) error {
	const name = "OTEL_RESOURCE_ATTRIBUTES"
	for _, pair := range splitPairs(env[name]) {
		key, value, ok := decodePair(pair)
		if !ok {
			return fmt.Errorf("%s: want KEY=VALUE with commas between them, got %q", name, pair)
		}
		s.attributes = append(s.attributes, attributeText{key, value})
	}
	if service := env["OTEL_SERVICE_NAME"]; service != "" {
		s.attributes = append(s.attributes, attributeText{"service.name", service})
	}
	return nil
}

// splitPairs returns the non-empty members of a comma-separated list.
func splitPairs(list string) []string {
	var pairs []string
	for pair := range strings.SplitSeq(list, ",") {
		if pair = strings.TrimSpace(pair); pair != "" {
			pairs = append(pairs, pair)
		}
	}
	return pairs
}

// decodePair parses KEY=VALUE. Key and value may be URL-encoded.
func decodePair(pair string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(pair, "=")
	key, keyErr := url.PathUnescape(strings.TrimSpace(key))
	value, valueErr := url.PathUnescape(strings.TrimSpace(value))
	return key, value, ok && key != "" && keyErr == nil && valueErr == nil
}

// isToken reports whether text is a valid header name.
func isToken(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return text != ""
}
