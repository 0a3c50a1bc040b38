package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/messagehub/messagehub/cmd/node/config"
	"github.com/messagehub/messagehub/cosmos/embedded/connlimit"
	"github.com/messagehub/messagehub/cosmos/embedded/loopback"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/content"
	"github.com/messagehub/messagehub/repository/content/embedded"
)

// A sharedStorage is the storage through which the node and the domains
// exchange content: a container in an Azure account, or in an embedded account
// with a listener for domains. The hub uses the same client for both kinds.
type sharedStorage struct {
	repository.Exchange
	own      *embedded.Account // embedded account; nil if the account is on Azure
	listener net.Listener      // listener for domains; nil if they cannot connect
	tls      *tls.Config       // TLS of the listener; nil for plain HTTP
}

func openExchange(ctx context.Context, cfg *config.Config, opts *Options) (_ *sharedStorage, err error) {
	container := cfg.Blob.ExchangeContainer()
	if !cfg.EmbeddedBlob() {
		blobs, err := azureBlobs(ctx, cfg, opts, container)
		return &sharedStorage{Exchange: blobs}, err
	}
	dir := ""
	if !cfg.InMemory {
		dir = filepath.Join(cfg.Data, exchangeFolder)
	}
	own, err := embedded.Open(embedded.Options{
		Dir: dir, Claim: opts.folder.Claim(exchangeFolder), Key: cfg.Exchange.Key.Reveal(), Containers: []string{container}, Logger: opts.Logger, MaxBlob: 2 * int64(cfg.Limits.Content),
		Changed: opts.reports.blobChanged(),
	})
	if err != nil {
		return nil, err
	}
	e := &sharedStorage{own: own, tls: opts.listenerTLS(cfg.Exchange)}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if err := opts.folder.List(exchangeFolder); err != nil {
		return nil, folderFault(cfg.Data, err)
	}
	if e.listener, err = listenForDomains(ctx, cfg, "blob-listen", cfg.BlobListen, opts.Logger); err != nil {
		return nil, err
	}
	e.Exchange, err = content.OpenBlobs(ctx, content.BlobOptions{
		Endpoint: own.Endpoint(), Account: own.Name(), Key: own.Key(), Transport: own.Transport(), Tracing: azureTraces(opts.Traces),
		Container: container, Aliases: e.accountURLs(), AnyHost: e.listener != nil && !loopback.IsAddr(e.listener.Addr()),
	})
	return e, err
}

// accountURLs returns the URLs at which domains reach the embedded account.
func (e *sharedStorage) accountURLs() []string {
	if e.listener == nil {
		return nil
	}
	_, port, _ := net.SplitHostPort(e.listener.Addr().String()) // never fails: the address of a listener contains a port
	scheme := "http"
	if e.tls != nil {
		scheme = "https"
	}
	var names []string
	for _, host := range []string{"127.0.0.1", "localhost", "[::1]"} {
		names = append(names, fmt.Sprintf("%s://%s:%s/%s", scheme, host, port, e.own.Name()))
	}
	if at := fmt.Sprintf("%s://%s/%s", scheme, e.listener.Addr(), e.own.Name()); at != names[0] {
		names = append(names, at)
	}
	return names
}

// blobOptions returns options for connecting to a container of the configured
// account.
func blobOptions(cfg *config.Config, opts *Options, container string) (content.BlobOptions, error) {
	o := content.BlobOptions{Endpoint: cfg.Blob.Endpoint, Container: container, Key: cfg.Blob.Key.Reveal(), Transport: opts.toServices(), Tracing: azureTraces(opts.Traces)}
	if o.Key != "" {
		return o, nil
	}
	credential, err := opts.identity()
	o.Credential = credential
	return o, err
}

func azureBlobs(ctx context.Context, cfg *config.Config, opts *Options, container string) (*content.Blobs, error) {
	o, err := blobOptions(cfg, opts, container)
	if err != nil {
		return nil, err
	}
	o.Create = o.Key != "" // a hub with an identity may not create containers; the deployment creates them
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return content.OpenBlobs(ctx, o)
}

// serve serves domains on the storage's listener until ctx ends.
func (e *sharedStorage) serve(ctx context.Context) error {
	if e.listener == nil {
		return nil
	}
	if err := e.own.Serve(ctx, e.listener, embedded.ServeOptions{TLS: e.tls, MaxConnections: planDescriptors(connlimit.FileLimit()).blobs}); err != nil {
		return fmt.Errorf("serve the exchange on %s: %w", e.listener.Addr(), err)
	}
	return nil
}

// failed returns a channel that receives an error when the embedded account can
// no longer work. For an account on Azure, the channel is nil.
func (e *sharedStorage) failed() <-chan error {
	if e.own == nil {
		return nil
	}
	return e.own.Broken()
}

func (e *sharedStorage) close() error {
	if e == nil {
		return nil
	}
	var errs []error
	if e.listener != nil {
		if err := e.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if e.own != nil {
		errs = append(errs, e.own.Close())
	}
	return errors.Join(errs...)
}
