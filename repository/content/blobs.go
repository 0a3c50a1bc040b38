package content

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
)

// Blobs keeps objects as block blobs in a container of a Blob Storage account. It
// is safe for concurrent use, and there is nothing to close.
type Blobs struct {
	container *container.Client
	places    []blobLocation // the container under all its names
	anyHost   bool           // the account also has unknown names on other hosts
}

var (
	_ repository.Content  = (*Blobs)(nil)
	_ repository.Exchange = (*Blobs)(nil)
)

// BlobOptions say where the blobs are stored.
type BlobOptions struct {
	// Endpoint is the URL of the account: https://account.blob.core.windows.net,
	// or http://127.0.0.1:10000/account for an emulator.
	Endpoint string

	// Container is the name of the container.
	Container string

	// Credential authorizes requests, unless there is a Key.
	Credential azcore.TokenCredential

	// Account and Key sign requests. Account is a part of Endpoint, unless Endpoint has a custom
	// domain.
	Account, Key string

	// Aliases are other endpoints by which domains may name the same account.
	Aliases []string

	// AnyHost says that domains may name the account by any host. It is for an account that the hub
	// serves itself, and that other machines reach by names which the hub does not know. The hub never
	// connects to a host that they name.
	AnyHost bool

	// Create creates the container if it does not exist.
	Create bool

	// Transport sends the requests. Default: that of the Azure SDK.
	Transport policy.Transporter

	// Tracing records the spans of the requests. The zero Provider records none.
	Tracing tracing.Provider
}

// How long one attempt at a request may take, and how often and when it is repeated. A read that takes
// longer continues with another attempt.
const (
	attemptLasts = 15 * time.Second
	retries      = 3
	firstDelay   = 200 * time.Millisecond
	longestDelay = 2 * time.Second
)

// OpenBlobs returns the blobs of a container. It reads the container's properties, or creates the
// container, so that an unusable account is detected now.
func OpenBlobs(ctx context.Context, o BlobOptions) (*Blobs, error) {
	b, err := newBlobs(o)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	if o.Create {
		_, err = b.container.Create(ctx, nil)
		if bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
			err = nil
		}
	} else {
		_, err = b.container.GetProperties(ctx, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("open blobs: container %s of %s: %w", o.Container, b.places[0].accountURL(), classifyBlobError(ctx, err))
	}
	return b, nil
}

func newBlobs(o BlobOptions) (*Blobs, error) {
	b := &Blobs{anyHost: o.AnyHost}
	for _, endpoint := range append([]string{o.Endpoint}, o.Aliases...) {
		p, err := placeOf(endpoint, o.Container)
		if err != nil {
			return nil, err
		}
		b.places = append(b.places, p)
	}
	options := &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: o.Transport, TracingProvider: o.Tracing,
		Retry: policy.RetryOptions{
			MaxRetries: retries, TryTimeout: attemptLasts, RetryDelay: firstDelay, MaxRetryDelay: longestDelay,
		},
		PerCallPolicies:  []policy.Policy{asStored{}},
		PerRetryPolicies: []policy.Policy{witness{}, traceHeader{}},
	}}
	address := b.places[0].containerURL()
	var err error
	switch {
	case o.Key != "":
		var key *azblob.SharedKeyCredential
		account := o.Account
		if account == "" {
			account = b.places[0].accountName()
		}
		if key, err = azblob.NewSharedKeyCredential(account, o.Key); err == nil {
			b.container, err = container.NewClientWithSharedKeyCredential(address, key, options)
		}
	case o.Credential != nil:
		b.container, err = container.NewClient(address, o.Credential, options)
	default:
		err = fmt.Errorf("want a credential or a key")
	}
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "%w", err)
	}
	return b, nil
}

// asStored is a policy that requests content as it was stored: otherwise the HTTP client would
// decompress a blob that is stored with compression.
type asStored struct{}

func (asStored) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Set("Accept-Encoding", "identity")
	return r.Next()
}

// ParseConnection converts a connection string with the key of an account, as the Azure portal and
// emulators show it, to options.
func ParseConnection(text string) (BlobOptions, error) {
	said := map[string]string{"DefaultEndpointsProtocol": "https", "EndpointSuffix": "core.windows.net"}
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			said[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	o := BlobOptions{Endpoint: said["BlobEndpoint"], Account: said["AccountName"], Key: said["AccountKey"]}
	if o.Account == "" || o.Key == "" {
		return BlobOptions{}, domain.Errorf(domain.Invalid, "blob connection string: want AccountName and AccountKey in it")
	}
	if o.Endpoint == "" {
		o.Endpoint = (&url.URL{Scheme: said["DefaultEndpointsProtocol"], Host: o.Account + ".blob." + said["EndpointSuffix"]}).String()
	}
	return o, nil
}
