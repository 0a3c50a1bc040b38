package otlp

import (
	"fmt"
	"strconv"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// A sampler is the name and the ratio of a sampler, so that samplers can be
// compared.
type sampler struct {
	name  string
	ratio float64
}

const defaultSampler = "parentbased_always_on"

func (env environment) setSampler(s *settings) error {
	s.sampler = sampler{name: defaultSampler, ratio: 1}
	if name := env["OTEL_TRACES_SAMPLER"]; name != "" {
		s.sampler.name = name
	}
	if _, err := s.sampler.newSampler(); err != nil {
		return err
	}
	if text := env["OTEL_TRACES_SAMPLER_ARG"]; text != "" {
		ratio, err := strconv.ParseFloat(text, 64)
		if err != nil || !(ratio >= 0 && ratio <= 1) {
			return fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: want a share of the traces from 0 to 1, such as 0.1, got %q", text)
		}
		s.sampler.ratio = ratio
	}
	return nil
}

func (s sampler) newSampler() (sdktrace.Sampler, error) {
	switch s.name {
	case "always_on":
		return sdktrace.AlwaysSample(), nil
	case "always_off":
		return sdktrace.NeverSample(), nil
	case "traceidratio":
		return sdktrace.TraceIDRatioBased(s.ratio), nil
	case defaultSampler:
		return sdktrace.ParentBased(sdktrace.AlwaysSample()), nil
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample()), nil
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(s.ratio)), nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: want always_on, always_off, traceidratio, parentbased_always_on, parentbased_always_off or parentbased_traceidratio, got %q", s.name)
	}
}
