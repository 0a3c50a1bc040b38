package node

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/domain/hub"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// An ownContents tells the hub which of its contents were deleted, according to
// the ledger. It fails until the hub is open.
type ownContents struct {
	hub     atomic.Pointer[hub.Hub]
	missing *prometheus.CounterVec
}

func newOwnContents(metrics prometheus.Registerer) *ownContents {
	c := &ownContents{missing: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "messagehub_contents_missing_total",
		Help: "Contents that were found to be deleted while their bundles were open: the domain makes a bundle's again, a payload is lost.",
	}, []string{"content"})}
	for _, kind := range []hub.MissingContent{hub.MissingBundle, hub.MissingPayload} {
		c.missing.WithLabelValues(string(kind))
	}
	metrics.MustRegister(c.missing)
	return c
}

// Gone implements ledger.Contents.
func (c *ownContents) Gone(ctx context.Context, key string) error {
	h := c.hub.Load()
	if h == nil {
		return domain.Errorf(domain.Unavailable, "the hub is not open yet")
	}
	return h.ContentGone(ctx, key)
}

// countMissing counts a content that the hub could not find.
func (c *ownContents) countMissing(kind hub.MissingContent) {
	c.missing.WithLabelValues(string(kind)).Inc()
}

// contentBucket returns the ledger's name for the bucket of the hub's own
// content: ACCOUNT/CONTAINER, even if the content is in a folder.
func contentBucket(cfg *config.Config) string {
	return storageAccount(cfg) + "/" + cfg.Blob.ContentContainer()
}

// exchangeBucket returns the ledger's name for the bucket that the hub shares
// with the domains: ACCOUNT/CONTAINER.
func exchangeBucket(cfg *config.Config) string {
	return storageAccount(cfg) + "/" + cfg.Blob.ExchangeContainer()
}

// ownRetentions returns how long the ledger retains rows of the hub's own
// objects: at most as long as acknowledged events. The hub eventually deletes
// each content, so without this limit rows of deleted contents would
// accumulate.
func ownRetentions(cfg *config.Config) map[string]domain.ObjectRetention {
	own := cfg.Retention
	if longest := cfg.Objects.Retention; longest > 0 && (own <= 0 || longest < own) {
		own = longest
	}
	kept := domain.ObjectRetention(own)
	return map[string]domain.ObjectRetention{contentBucket(cfg): kept, exchangeBucket(cfg): kept}
}

// storageAccount returns the name of the storage account: the first label of
// the host name or, for an emulator with an IP address, the first segment of
// the path.
func storageAccount(cfg *config.Config) string {
	if cfg.EmbeddedBlob() {
		return embedded.WellKnownAccount
	}
	u, err := url.Parse(cfg.Blob.Endpoint)
	if err != nil {
		return ""
	}
	if path := strings.Trim(u.Path, "/"); path != "" {
		account, _, _ := strings.Cut(path, "/")
		return account
	}
	account, _, _ := strings.Cut(u.Hostname(), ".")
	return account
}
