package push

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cosmos/client"
)

// newNewerDocuments returns a record of the documents whose format is too new for this node. Other
// documents of the same partition, such as the entries of other cursors, are not affected.
func newNewerDocuments(opts *Options) *client.NewerFormats {
	reported := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "messagehub_push_newer_format_documents",
		Help: "Documents of streams and cursors that this node leaves alone because a newer version has stored them in a format that it does not know, up to 1,000.",
	})
	if opts.Registerer != nil {
		opts.Registerer.MustRegister(reported)
	}
	return client.NewNewerFormats(client.NewerFormatsOptions{
		SubjectOf: func(partitionKey, id string) string { return id + " of " + partitionKey },
		Name:      "document", Logger: opts.Logger, Reported: reported,
	})
}
