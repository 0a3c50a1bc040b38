package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/messagehub/messagehub/cmd/terminal"
	blobaccount "github.com/messagehub/messagehub/repository/content/embedded"
)

// Environment variables that specify the storage account through which a domain
// and the hub exchange content. If none is set, the account of a local hub is
// used.
const (
	blobConnectionVariable = "MESSAGEHUB_BLOB_CONNECTION"
	blobEndpointVariable   = "MESSAGEHUB_BLOB_ENDPOINT"
	defaultBlob            = "http://127.0.0.1:10000/" + blobaccount.WellKnownAccount
)

// exchange returns a client for the container name in a storage account. text
// is the account's connection string or URL. The client uses the well-known key
// for a URL on this machine, and the machine's identity for a URL on Azure. If
// text is empty, the account comes from the environment or, if none is set, is
// that of a local hub.
func (p *process) exchange(text, name string) (*container.Client, error) {
	text = cmp.Or(text, p.variable(blobConnectionVariable), p.variable(blobEndpointVariable), defaultBlob)
	var options azblob.ClientOptions
	options.Retry = policy.RetryOptions{MaxRetries: 3, RetryDelay: blobPause, MaxRetryDelay: 10 * blobPause}
	secured, err := p.access.tlsConfig()
	if err != nil {
		return nil, err
	}
	if secured != nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.TLSClientConfig = secured
		options.Transport = &http.Client{Transport: transport}
	}
	if strings.Contains(text, "=") && !strings.HasPrefix(text, "http") {
		client, err := azblob.NewClientFromConnectionString(text, &options)
		if err != nil {
			return nil, fmt.Errorf("the connection string of the storage account: %w", err)
		}
		return client.ServiceClient().NewContainerClient(name), nil
	}
	at, err := url.Parse(text)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, fmt.Errorf("want the URL of a storage account such as %s, or its connection string, got %q", defaultBlob, terminal.Clip(text, 20)) // shortened, because the text may contain a key
	}
	client, err := openAccountAt(at, &options)
	if err != nil {
		return nil, err
	}
	return client.ServiceClient().NewContainerClient(name), nil
}

const blobPause = 250 * time.Millisecond

func openAccountAt(at *url.URL, options *azblob.ClientOptions) (*azblob.Client, error) {
	account := strings.Trim(at.Path, "/")
	if account == "" { // on Azure, the account is part of the host name
		credential, err := azidentity.NewDefaultAzureCredential(nil)
		if err != nil {
			return nil, err
		}
		return azblob.NewClient(at.String(), credential, options)
	}
	key, err := azblob.NewSharedKeyCredential(account, blobaccount.WellKnownKey)
	if err != nil {
		return nil, err
	}
	return azblob.NewClientWithSharedKeyCredential(at.String(), key, options)
}

// reachExchange fails if the container cannot be reached. A command calls it
// before it begins to work.
func reachExchange(ctx context.Context, exchange *container.Client) error {
	_, err := exchange.GetProperties(ctx, nil)
	at, name := exchange.URL(), ""
	if i := strings.LastIndex(at, "/"); i > 0 {
		at, name = at[:i], at[i+1:]
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no storage account listens at %s; start messagehub serve, or name another with --blob or %s", at, blobEndpointVariable)
	case bloberror.HasCode(err, bloberror.ContainerNotFound):
		return fmt.Errorf("the account %s has no container %s; name the one that the hub shares with --exchange", at, name)
	}
	if said, ok := errors.AsType[*azcore.ResponseError](err); ok {
		return fmt.Errorf("the account %s refused access to the container %s: %d %s", at, name, said.StatusCode, said.ErrorCode)
	}
	return fmt.Errorf("no answer from the storage account %s: %w", at, err)
}
