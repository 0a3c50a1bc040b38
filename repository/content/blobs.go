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

// Blobs stores objects as block blobs in a container of a Blob Storage account. It is safe for
// concurrent use, and need not be closed.
type Blobs struct {
	container *container.Client
	locations []blobLocation // all locations of the container: the endpoint, then the aliases
	anyHost   bool           // URIs of domains may have any host; see BlobOptions.AnyHost
}

var (
	_ repository.Content  = (*Blobs)(nil)
	_ repository.Exchange = (*Blobs)(nil)
)

// BlobOptions are the address of a container of blobs, and the credential for it.
type BlobOptions struct {
	// Endpoint is the URL of the account: https://account.blob.core.windows.net,
	// or http://127.0.0.1:10000/account for an emulator.
	Endpoint string

	// Container is the name of the container.
	Container string

	// Credential authorizes requests if Key is empty.
	Credential azcore.TokenCredential

	// Account and Key sign requests. Account may be empty unless Endpoint has a custom domain: its
	// default is the account's name in Endpoint.
	Account, Key string

	// Aliases are other endpoints of the same account, which URIs of domains may contain.
	Aliases []string

	// AnyHost permits URIs of domains with any host. It is for an account that the hub serves itself,
	// and that other machines reach by host names which the hub does not know. The hub never connects to
	// the host of such a URI.
	AnyHost bool

	// Create creates the container if it does not exist.
	Create bool

	// Transport sends the requests. Default: the transport of the Azure SDK.
	Transport policy.Transporter

	// Tracing records the spans of the requests. The zero Provider records no spans.
	Tracing tracing.Provider
}

// Limits for the attempts of a request. A read that exceeds attemptTimeout continues with another
// request.
const (
	attemptTimeout = 15 * time.Second
	maxRetries     = 3
	firstDelay     = 200 * time.Millisecond
	maxDelay       = 2 * time.Second
)

// OpenBlobs returns the blobs of a container. To detect an unusable account, it sends one request:
// it creates the container if o.Create is set, and reads the container's properties otherwise.
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
		return nil, fmt.Errorf("open blobs: container %s of %s: %w", o.Container, b.locations[0].accountURL(), classifyBlobError(ctx, err))
	}
	return b, nil
}

func newBlobs(o BlobOptions) (*Blobs, error) {
	b := &Blobs{anyHost: o.AnyHost}
	for _, endpoint := range append([]string{o.Endpoint}, o.Aliases...) {
		location, err := parseLocation(endpoint, o.Container)
		if err != nil {
			return nil, err
		}
		b.locations = append(b.locations, location)
	}
	options := &container.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: o.Transport, TracingProvider: o.Tracing,
		Retry: policy.RetryOptions{
			MaxRetries: maxRetries, TryTimeout: attemptTimeout, RetryDelay: firstDelay, MaxRetryDelay: maxDelay,
		},
		PerCallPolicies:  []policy.Policy{identityEncoding{}},
		PerRetryPolicies: []policy.Policy{attemptObserver{}, traceHeader{}},
	}}
	address := b.locations[0].containerURL()
	var err error
	switch {
	case o.Key != "":
		var key *azblob.SharedKeyCredential
		account := o.Account
		if account == "" {
			account = b.locations[0].accountName()
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

// identityEncoding is a policy that requests content in its stored form. Without it, the HTTP client would
// decompress a blob that is stored with compression.
type identityEncoding struct{}

func (identityEncoding) Do(r *policy.Request) (*http.Response, error) {
	r.Raw().Header.Set("Accept-Encoding", "identity")
	return r.Next()
}

// ParseConnection returns the options in a connection string that contains the key of an account. The
// Azure portal and emulators show this string.
func ParseConnection(text string) (BlobOptions, error) {
	fields := map[string]string{"DefaultEndpointsProtocol": "https", "EndpointSuffix": "core.windows.net"}
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			fields[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	o := BlobOptions{Endpoint: fields["BlobEndpoint"], Account: fields["AccountName"], Key: fields["AccountKey"]}
	if o.Account == "" || o.Key == "" {
		return BlobOptions{}, domain.Errorf(domain.Invalid, "blob connection string: want AccountName and AccountKey")
	}
	if o.Endpoint == "" {
		o.Endpoint = (&url.URL{Scheme: fields["DefaultEndpointsProtocol"], Host: o.Account + ".blob." + fields["EndpointSuffix"]}).String()
	}
	return o, nil
}
