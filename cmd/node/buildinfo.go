package node

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// registerBuildInfo registers a metric whose labels are the node's version and
// revision.
func registerBuildInfo(metrics prometheus.Registerer, version, revision string) {
	promauto.With(metrics).NewGaugeVec(prometheus.GaugeOpts{
		Name: "messagehub_build_info",
		Help: "Always 1, with the version, the Go version and the revision that this node was built from.",
	}, []string{"version", "goversion", "revision"}).WithLabelValues(cmp.Or(version, "unknown"), runtime.Version(), revision).Set(1)
}

// recordedRevision returns the commit from which the program was built, or
// "unknown" if the go command did not record it.
func recordedRevision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	found, dirty := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			found = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return found + dirty
}
