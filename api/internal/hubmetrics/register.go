package hubmetrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register registers c and returns it. If a collector with the same name and labels is already
// registered, it returns that collector instead. If registerer is nil, it returns c. It panics if a
// metric of a different kind has the same name.
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

// Initialize creates a series at 0 for each combination of a counter's label values. labels
// contains the values of each label, in the order of the counter's labels.
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
