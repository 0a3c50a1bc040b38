package azure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/source"
)

// Options are the address of an account, and the credential for it.
type Options struct {
	// Endpoint is the URL of the account: https://account.blob.core.windows.net, or
	// http://127.0.0.1:10000/account for an emulator.
	Endpoint string
	// Account is the name of the account. Default: the name in Endpoint.
	Account string
	// Key signs requests and links. Default: Credential authorizes them.
	Key        string
	Credential azcore.TokenCredential
	Transport  policy.Transporter // default: the transport of the Azure SDK
	Retries    int32              // number of retries of a request; default 3; negative for no retries
	Clock      func() time.Time   // default: time.Now
}

// A Store reads an account. It is safe for concurrent use, and does not need to be closed.
type Store struct {
	account string
	service *service.Client
	key     *service.SharedKeyCredential // nil if the identity signs links
	keys    delegatedKeys
	clock   func() time.Time
}

var _ repository.Source = (*Store)(nil)

// New returns a Store for an account. It sends no request.
func New(o Options) (*Store, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, domain.Errorf(domain.Invalid, "blob endpoint: want a URL such as https://account.blob.core.windows.net")
	}
	s := &Store{account: cmp.Or(o.Account, accountIn(u)), clock: o.Clock}
	if s.clock == nil {
		s.clock = time.Now
	}
	options := &service.ClientOptions{ClientOptions: policy.ClientOptions{
		Transport: o.Transport,
		Retry: policy.RetryOptions{
			MaxRetries: cmp.Or(o.Retries, 3), TryTimeout: 15 * time.Second, RetryDelay: 200 * time.Millisecond, MaxRetryDelay: 2 * time.Second,
		},
	}}
	endpoint := strings.TrimRight(o.Endpoint, "/")
	switch {
	case o.Key != "":
		if s.key, err = service.NewSharedKeyCredential(s.account, o.Key); err == nil {
			s.service, err = service.NewClientWithSharedKeyCredential(endpoint, s.key, options)
		}
	case o.Credential != nil:
		s.service, err = service.NewClient(endpoint, o.Credential, options)
	default:
		err = errors.New("want a key or a credential")
	}
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "blob account %s: %w", s.account, err)
	}
	return s, nil
}

// accountIn returns the name of the account in an endpoint: the last part of its path, or the first
// part of its host.
func accountIn(u *url.URL) string {
	if p := strings.Trim(u.Path, "/"); p != "" {
		return path.Base(p)
	}
	name, _, _ := strings.Cut(u.Hostname(), ".")
	return name
}

// containerClient returns the client of the container that a bucket names. It returns false if the
// bucket is not in the account of s.
func (s *Store) containerClient(bucket string) (*container.Client, bool) {
	account, name, _ := strings.Cut(bucket, "/")
	if account != s.account || name == "" || strings.Contains(name, "/") {
		return nil, false
	}
	return s.service.NewContainerClient(name), true
}

const maxResults = 5000 // the limit of Blob Storage for a request

// List implements [repository.Source]. A cursor is a marker of Blob Storage.
func (s *Store) List(ctx context.Context, bucket, prefix, cursor string, limit int) (page repository.SourcePage, err error) {
	c, ok := s.containerClient(bucket)
	if !ok {
		return page, domain.Errorf(domain.NotFound, "the account %s has no such bucket", s.account)
	}
	n := int32(min(limit, maxResults)) //nolint:gosec // far below
	options := &container.ListBlobsFlatOptions{MaxResults: &n}
	if prefix != "" {
		options.Prefix = &prefix
	}
	if cursor != "" {
		options.Marker = &cursor
	}
	found, err := c.NewListBlobsFlatPager(options).NextPage(ctx)
	if err != nil {
		return page, classifyError(ctx, err)
	}
	for _, item := range found.Segment.BlobItems {
		p := item.Properties
		if p == nil || item.Name == nil || valueOf(p.ResourceType) == "directory" {
			continue
		}
		object := repository.SourceObject{Key: *item.Name}
		object.Size, object.LastModified, object.Reason = p.ContentLength, valueOf(p.LastModified), domain.Crawl
		object.ETag = domain.QuoteETag(string(valueOf(p.ETag)))
		object.StorageClass, object.ArchiveStatus = string(valueOf(p.AccessTier)), string(valueOf(p.ArchiveStatus))
		page.Objects = append(page.Objects, object)
	}
	page.Cursor = valueOf(found.NextMarker)
	return page, nil
}

// Stat implements [repository.Source].
func (s *Store) Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (object repository.SourceObject, err error) {
	c, ok := s.containerClient(name.Bucket())
	if !ok {
		return object, source.NoBucket("the account " + s.account + " has no such bucket")
	}
	if version != nil && *version != (domain.VersionID{}) {
		return object, errNoVersion
	}
	p, err := c.NewBlobClient(name.Key()).GetProperties(ctx, nil)
	if bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted, bloberror.ContainerDisabled) {
		return object, source.NoBucket("the account has no such container")
	}
	if err != nil {
		return object, classifyError(ctx, err)
	}
	object.Key = name.Key()
	object.Size, object.LastModified, object.Reason = p.ContentLength, valueOf(p.LastModified), domain.Crawl
	object.ETag = domain.QuoteETag(string(valueOf(p.ETag)))
	object.StorageClass, object.ArchiveStatus = valueOf(p.AccessTier), valueOf(p.ArchiveStatus)
	return object, nil
}

// Open implements [repository.Source].
func (s *Store) Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error) {
	c, ok := s.containerClient(name.Bucket())
	if !ok {
		return nil, domain.Errorf(domain.NotFound, "the account %s has no such bucket", s.account)
	}
	ctx = policy.WithHTTPHeader(ctx, http.Header{"Accept-Encoding": {"identity"}}) // the SDK must not decompress the content
	answer, err := c.NewBlobClient(name.Key()).DownloadStream(ctx, nil)
	switch {
	case bloberror.HasCode(err, bloberror.BlobArchived):
		return nil, source.ErrArchived
	case err != nil:
		return nil, classifyError(ctx, err)
	}
	return answer.Body, nil
}

var errNoVersion = domain.Errorf(domain.NotFound, "the store has the current blob only, as the null version")

func valueOf[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// classifyError adds a domain.Kind to the error of a call. If ctx has ended, it returns the error of
// ctx.
func classifyError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok {
		// err must not be wrapped: it may be the exceeded deadline of one attempt, which errors.Is could
		// not distinguish from the deadline of the caller.
		return domain.Errorf(domain.Unavailable, "the account did not respond, or no token is available for it: %v", err)
	}
	text := fmt.Sprintf("the account responded with %d %s", answer.StatusCode, answer.ErrorCode)
	if answer.RawResponse != nil {
		if id := answer.RawResponse.Header.Get("x-ms-request-id"); id != "" {
			text += " (request " + id + ")"
		}
	}
	if answer.StatusCode == 404 && !bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ContainerNotFound, "") {
		return source.NoBucket(text) // for example, ResourceNotFound means that the endpoint is not a Blob Storage account
	}
	return source.ErrorOf(answer.StatusCode, text)
}
