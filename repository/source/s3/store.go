package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/messagehub/messagehub/domain"
	"github.com/messagehub/messagehub/repository"
	"github.com/messagehub/messagehub/repository/source"
)

// Options are the address of a store, and the credential for it.
type Options struct {
	Endpoint             string // https://s3.eu-west-1.amazonaws.com
	Region               string // default us-east-1
	AccessKey, SecretKey string
	Transport            http.RoundTripper
	Attempts             int // number of attempts of a request; default 4
}

// A Store reads a store with the protocol of S3. It is safe for concurrent use, and does not need to be
// closed.
type Store struct{ client *minio.Client }

var _ repository.Source = (*Store)(nil)

// New returns a Store. It sends no request.
func New(o Options) (*Store, error) {
	u, err := url.Parse(o.Endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, domain.Errorf(domain.Invalid, "S3 endpoint: want a URL such as https://s3.eu-west-1.amazonaws.com")
	}
	if o.AccessKey == "" || o.SecretKey == "" {
		return nil, domain.Errorf(domain.Invalid, "S3: want an access key and its secret key")
	}
	client, err := minio.New(u.Host, &minio.Options{
		Creds: credentials.NewStaticV4(o.AccessKey, o.SecretKey, ""), Secure: u.Scheme == "https",
		Region: cmp.Or(o.Region, "us-east-1"), Transport: o.Transport, MaxRetries: cmp.Or(o.Attempts, 4),
	})
	if err != nil {
		return nil, domain.Errorf(domain.Invalid, "S3 endpoint: %w", err)
	}
	return &Store{client}, nil
}

// List implements [repository.Source]. A cursor is the last key before the page.
func (s *Store) List(ctx context.Context, bucket, prefix, cursor string, limit int) (repository.SourcePage, error) {
	page, err := s.listObjects(ctx, bucket, prefix, cursor, limit, true)
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotImplemented {
		page, err = s.listObjects(ctx, bucket, prefix, cursor, limit, false)
	}
	return page, classifyError(ctx, err)
}

// maxKeys is the limit of S3 for a request.
const maxKeys = 1000

func (s *Store) listObjects(ctx context.Context, bucket, prefix, cursor string, limit int, withVersions bool) (page repository.SourcePage, err error) {
	last, latest, n := cursor, "", 0
	for found := range s.client.ListObjectsIter(ctx, bucket, minio.ListObjectsOptions{
		WithVersions: withVersions, WithRestoreStatus: true, Recursive: true, Prefix: prefix, StartAfter: cursor, MaxKeys: min(limit, maxKeys),
	}) {
		if found.Err != nil {
			return repository.SourcePage{}, found.Err
		}
		if found.Key < last || n == 0 && found.Key == cursor { // without this check, the iterator would not end if the store repeats a page
			return repository.SourcePage{}, domain.Errorf(domain.Unavailable, "the store lists %q after %q", domain.Shorten(found.Key), domain.Shorten(last))
		}
		if n, last = n+1, found.Key; !withVersions || found.IsLatest {
			object, err := objectOf(&found)
			if err != nil {
				return repository.SourcePage{}, err
			}
			page.Objects, latest = append(page.Objects, object), found.Key
		}
		if n >= limit && latest == last {
			page.Cursor = last
			return page, nil
		}
	}
	if err := ctx.Err(); err != nil { // when ctx ends, the iterator ends without an error
		return repository.SourcePage{}, err
	}
	return page, nil
}

// Stat implements [repository.Source].
func (s *Store) Stat(ctx context.Context, name domain.ObjectName, version *domain.VersionID) (repository.SourceObject, error) {
	opts := minio.StatObjectOptions{Checksum: true}
	if version != nil {
		opts.VersionID = version.String()
	}
	found, err := s.client.StatObject(ctx, name.Bucket(), name.Key(), opts)
	if found.Key = name.Key(); err == nil || found.IsDeleteMarker && version != nil {
		return objectOf(&found)
	}
	err = classifyError(ctx, err)
	if domain.KindOf(err) != domain.NotFound {
		return repository.SourceObject{}, err
	}
	// A 404 to HEAD does not say whether the bucket or the object was not found.
	isThere, bucketErr := s.client.BucketExists(ctx, name.Bucket())
	switch {
	case bucketErr != nil:
		return repository.SourceObject{}, classifyError(ctx, bucketErr)
	case !isThere:
		return repository.SourceObject{}, source.NoBucket("the store has no such bucket")
	default:
		return repository.SourceObject{}, err
	}
}

// Open implements [repository.Source].
func (s *Store) Open(ctx context.Context, name domain.ObjectName) (io.ReadCloser, error) {
	opts := minio.GetObjectOptions{}
	opts.Set("Accept-Encoding", "identity") // the client must not decompress the content
	content, _, _, err := minio.Core{Client: s.client}.GetObject(ctx, name.Bucket(), name.Key(), opts)
	if minio.ToErrorResponse(err).Code == minio.InvalidObjectState {
		return nil, source.ErrArchived
	}
	return content, classifyError(ctx, err)
}

// Link implements [repository.Source].
func (s *Store) Link(ctx context.Context, name domain.ObjectName, version domain.VersionID, opts repository.LinkOptions) (string, error) {
	query := url.Values{"versionId": {version.String()}}
	for parameter, value := range map[string]string{
		"response-content-disposition": opts.Disposition, "response-content-type": opts.ContentType, "response-content-encoding": opts.ContentEncoding,
	} {
		if value != "" {
			query.Set(parameter, value)
		}
	}
	link, err := s.client.PresignedGetObject(ctx, name.Bucket(), name.Key(), opts.Expires, query)
	if err != nil {
		return "", domain.Errorf(domain.Invalid, "the link cannot be signed: %w", err)
	}
	return link.String(), nil
}

const archiveStatusHeader = "X-Amz-Archive-Status"

// objectOf returns the facts of an object from a listing or from a response to HEAD. The response has no
// storage class if the class is the standard one.
func objectOf(found *minio.ObjectInfo) (object repository.SourceObject, err error) {
	object = repository.SourceObject{Key: found.Key, Marker: found.IsDeleteMarker}
	object.LastModified, object.Reason = found.LastModified, domain.Crawl
	if object.Version, err = domain.ParseVersionID(found.VersionID); err != nil || object.Marker {
		return object, err
	}
	object.Size, object.ETag, object.SHA256 = &found.Size, domain.QuoteETag(found.ETag), found.ChecksumSHA256
	object.StorageClass = cmp.Or(found.StorageClass, found.Headers.Get("X-Amz-Storage-Class"), domain.ClassStandard)
	object.ArchiveStatus = found.Headers.Get(archiveStatusHeader)
	if found.Restore != nil && !found.Restore.OngoingRestore {
		object.Reason = domain.CrawlRestored
	}
	return object, nil
}

// classifyError adds a domain.Kind to the error of a call. If ctx has ended, it returns the error of
// ctx.
func classifyError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if _, isClassified := errors.AsType[*domain.Error](err); isClassified {
		return err
	}
	answer, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		// err must not be wrapped: it may be the exceeded deadline of one attempt, which errors.Is could
		// not distinguish from the deadline of the caller.
		return domain.Errorf(domain.Unavailable, "the store did not respond: %v", err)
	}
	text := fmt.Sprintf("the store responded with %d %s", answer.StatusCode, answer.Code)
	if answer.RequestID != "" {
		text += " (request " + answer.RequestID + ")"
	}
	return source.ErrorOf(answer.StatusCode, text)
}
