package node

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/repository"
)

// reportShards returns a function that sets the metrics of a ledger shard. Only
// the node that last swept the shard exports current values.
func reportShards(metrics prometheus.Registerer) func(repository.ObjectShard, repository.ShardUsage) {
	labels := []string{"bucket", "shard"}
	documents := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "messagehub_object_shard_documents", Help: "Documents of a shard of objects when this node has swept it, by kind.",
	}, append([]string{"kind"}, labels...))
	bytes := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "messagehub_object_shard_bytes", Help: "Estimated bytes of a shard of objects when this node has swept it, of 20 GB that it can hold.",
	}, labels)
	if metrics != nil {
		metrics.MustRegister(documents, bytes)
	}
	return func(shard repository.ObjectShard, usage repository.ShardUsage) {
		number := strconv.Itoa(shard.Number)
		documents.WithLabelValues("object", shard.Bucket, number).Set(float64(usage.Objects))
		documents.WithLabelValues("row", shard.Bucket, number).Set(float64(usage.Rows))
		bytes.WithLabelValues(shard.Bucket, number).Set(float64(usage.Bytes))
	}
}
