package hubmetrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers a collector and returns it, or returns the one with the same name and labels
// that another edge has registered. It returns c if registerer is nil, and panics if another kind of
// metric has the name.
func Register[C prometheus.Collector](registerer prometheus.Registerer, c C) C {
	if registerer == nil {
		return c
	}
	err := registerer.Register(c)
	if shared, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return shared.ExistingCollector.(C) //nolint:forcetypeassert // it has the same name and labels
	}
	if err != nil {
		panic(err) // two different metrics have the same name
	}
	return c
}

// Initialize creates a series at 0 for each combination of the values of the
// labels of a counter, which are given in the order of the labels.
func Initialize(counter *prometheus.CounterVec, labels ...[]string) {
	eachCombination(nil, labels, func(values []string) { counter.WithLabelValues(values...) })
}

func eachCombination(values []string, labels [][]string, visit func(values []string)) {
	if len(labels) == 0 {
		visit(values)
		return
	}
	for _, value := range labels[0] {
		eachCombination(append(values[:len(values):len(values)], value), labels[1:], visit)
	}
}
