package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A certificateTimes exports the validity period of the server's certificate;
// without TLS, it exports nothing. The start allows alerts that depend on the
// lifetime: two weeks before expiry is late for a certificate that is valid for
// a year, but too early for one that is valid for six days.
type certificateTimes struct{ certificate *certificate }

var (
	certificateStart = prometheus.NewDesc("messagehub_certificate_start_timestamp_seconds",
		"When the certificate of the server began to be valid. A hub without TLS does not export it.", nil, nil)
	certificateExpiry = prometheus.NewDesc("messagehub_certificate_expiry_timestamp_seconds",
		"When the certificate of the server ends to be valid. A hub without TLS does not export it.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c certificateTimes) Describe(out chan<- *prometheus.Desc) {
	out <- certificateStart
	out <- certificateExpiry
}

// Collect implements prometheus.Collector. Like a handshake, it reads the files
// again if they have changed.
func (c certificateTimes) Collect(out chan<- prometheus.Metric) {
	if c.certificate == nil {
		return
	}
	current, err := c.certificate.get(nil)
	if err != nil || current.Leaf == nil {
		return
	}
	for desc, at := range map[*prometheus.Desc]time.Time{certificateStart: current.Leaf.NotBefore, certificateExpiry: current.Leaf.NotAfter} {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(at.Unix()))
	}
}
