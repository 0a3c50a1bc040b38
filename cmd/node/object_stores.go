package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/source"
	"github.com/messagehub/messagehub/repository/source/azure"
	"github.com/messagehub/messagehub/repository/source/folder"
	"github.com/messagehub/messagehub/repository/source/s3"
)

// openSources opens the object stores that the node may read. Only this
// function reads their keys. It makes no request, because a store that does not
// respond must not prevent the start.
func openSources(cfg *config.Config, opts *Options, s *nodeStore) (source.Stores, error) {
	var stores source.Stores
	for i := range cfg.Objects.Stores {
		c := &cfg.Objects.Stores[i]
		opened, err := openSource(c, opts, s)
		if err != nil {
			return nil, fmt.Errorf("objects.stores: %s: %w", c.Bucket, err)
		}
		stores = append(stores, source.Store{Buckets: c.Bucket, Source: opened})
	}
	own, err := ownSources(cfg, opts, s)
	if err != nil {
		return nil, fmt.Errorf("open the hub's own content to list it: %w", err)
	}
	return append(stores, own...), nil
}

// ownSources opens the store of the hub's own content, and the store that the
// hub shares with the domains.
func ownSources(cfg *config.Config, opts *Options, s *nodeStore) (stores source.Stores, err error) {
	if !cfg.EmbeddedBlob() {
		blobs, err := blobOptions(cfg, opts, "")
		if err != nil {
			return nil, err
		}
		account, err := azure.New(azure.Options{
			Endpoint: blobs.Endpoint, Account: storageAccount(cfg), Key: blobs.Key, Credential: blobs.Credential, Transport: blobs.Transport, Clock: opts.Clock,
		})
		if err != nil {
			return nil, err
		}
		return source.Stores{{Buckets: contentBucket(cfg), Source: account}, {Buckets: exchangeBucket(cfg), Source: account}}, nil
	}
	shared := s.exchange.own
	o := azure.Options{Endpoint: shared.Endpoint(), Account: shared.Name(), Key: shared.Key(), Transport: shared.Transport(), Clock: opts.Clock}
	names := s.exchange.accountURLs()
	if len(names) > 0 {
		o.Endpoint = names[0] // used only in links; requests go directly to the embedded account
	}
	account, err := azure.New(o)
	if err != nil {
		return nil, err
	}
	exchange := source.Store{Buckets: exchangeBucket(cfg), Source: account}
	if len(names) == 0 {
		exchange.Source = unlinkedSource{account}
	}
	stores = append(stores, exchange)
	if cfg.InMemory {
		return stores, nil
	}
	files, err := folder.Open(filepath.Join(cfg.Data, contentFolder))
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, files.Close)
	return append(stores, source.Store{Buckets: contentBucket(cfg), Source: files}), nil
}

func openSource(c *config.ObjectStore, opts *Options, s *nodeStore) (repository.Source, error) {
	key, _, err := c.Key.Read()
	if err != nil {
		return nil, err
	}
	switch c.Kind {
	case config.StoreS3:
		return s3.New(s3.Options{
			Endpoint: c.Endpoint, Region: c.Region, AccessKey: c.AccessKey, SecretKey: key.Reveal(), Transport: roundTripper{opts.toServices()},
		})
	case config.StoreAzure:
		o := azure.Options{Endpoint: c.Endpoint, Account: c.Account, Key: key.Reveal(), Transport: opts.toServices(), Clock: opts.Clock}
		if o.Key == "" {
			if o.Credential, err = opts.identity(); err != nil {
				return nil, err
			}
		}
		return azure.New(o)
	case config.StoreFolder:
		opened, err := folder.Open(c.Folder)
		if err == nil {
			s.closers = append(s.closers, opened.Close)
		}
		return opened, err
	default:
		return nil, errors.New("a store of unknown kind")
	}
}

// An unlinkedSource is a Source that returns no links, because no listener
// would serve them.
type unlinkedSource struct{ repository.Source }

// Link implements [repository.Source].
func (unlinkedSource) Link(context.Context, domain.ObjectName, domain.VersionID, repository.LinkOptions) (string, error) {
	return "", repository.ErrNoLinks
}

// A roundTripper is an http.RoundTripper that sends requests with a transport
// of the node.
type roundTripper struct{ policy.Transporter }

// RoundTrip implements [http.RoundTripper].
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t.Do(r) }
