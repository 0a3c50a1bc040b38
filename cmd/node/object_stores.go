package node

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/source"
	"github.com/messagehub/messagehub/repository/source/azure"
	"github.com/messagehub/messagehub/repository/source/folder"
	"github.com/messagehub/messagehub/repository/source/s3"
)

// openSources opens the stores whose objects a node may read. It is the one place that reads their
// keys. It makes no request: a store that does not answer is no reason not to start.
func openSources(cfg *config.Config, opts *Options, s *store) (source.Stores, error) {
	var stores source.Stores
	for i := range cfg.Objects.Stores {
		c := &cfg.Objects.Stores[i]
		opened, err := openSource(c, opts, s)
		if err != nil {
			return nil, fmt.Errorf("objects.stores: %s: %w", c.Bucket, err)
		}
		stores = append(stores, source.Store{Buckets: c.Bucket, Source: opened})
	}
	return stores, nil
}

func openSource(c *config.ObjectStore, opts *Options, s *store) (repository.Source, error) {
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

// A roundTripper sends requests by a transport of the node.
type roundTripper struct{ policy.Transporter }

// RoundTrip implements [http.RoundTripper].
func (t roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t.Do(r) }
