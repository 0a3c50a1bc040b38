package content

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// The rights that ProbeBlobs tests.
const (
	RightWrite  = "write"
	RightRead   = "read"
	RightList   = "list"
	RightDelete = "delete"
)

// A ProbedRight is the result of ProbeBlobs for one right.
type ProbedRight struct {
	Name     string
	IsDenied bool  // the account refused the credential
	Err      error // nil if the right is granted
}

// probeFolder is the prefix of the names of the blobs that ProbeBlobs creates. No object of the hub has
// a name with this prefix.
const probeFolder = "doctor/"

// maxProbeAge is the age, by the clock of the account, from which ProbeBlobs deletes a blob of an earlier
// run.
const maxProbeAge = time.Minute

// ProbeBlobs tests which rights o's credential has in an existing container. For this, it creates, reads
// and deletes a blob, whose name contains id. The blob remains if the program dies before the deletion,
// or if the credential must not delete blobs. If it may list and delete blobs, ProbeBlobs also deletes
// blobs of earlier runs that are at least a minute old; removed is the number of these blobs.
func ProbeBlobs(ctx context.Context, o BlobOptions, id string) (rights []ProbedRight, removed int, err error) {
	b, err := newBlobs(o)
	if err != nil {
		return nil, 0, err
	}
	p := &blobProbe{container: b.container, name: probeFolder + id}
	for _, test := range []struct {
		right string
		run   func(context.Context) error
	}{{RightWrite, p.writeBlob}, {RightRead, p.readBlob}, {RightList, p.listBlobs}, {RightDelete, p.deleteBlobs}} {
		err := test.run(ctx)
		if bloberror.HasCode(err, bloberror.BlobNotFound) { // the blob does not exist, because it could not be written
			err = nil
		}
		rights = append(rights, ProbedRight{test.right, isRefusal(err), classifyBlobError(ctx, err)})
	}
	return rights, p.removed, nil
}

// isRefusal reports whether err means that the account refused a credential.
func isRefusal(err error) bool {
	resp, ok := errors.AsType[*azcore.ResponseError](err)
	return ok && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden)
}

// A blobProbe is one run of ProbeBlobs.
type blobProbe struct {
	container *container.Client
	name      string
	now       time.Time    // time of the upload, by the clock of the account; zero: unknown
	others    []probedBlob // blobs of other runs
	removed   int          // number of deleted blobs of other runs
}

// A probedBlob is a blob of another run of ProbeBlobs.
type probedBlob struct {
	name    string
	written time.Time
}

func (p *blobProbe) writeBlob(ctx context.Context) error {
	resp, err := p.container.NewBlockBlobClient(p.name).Upload(ctx, streaming.NopCloser(bytes.NewReader([]byte("doctor"))), nil)
	if err == nil && resp.LastModified != nil {
		p.now = *resp.LastModified
	}
	return err
}

func (p *blobProbe) readBlob(ctx context.Context) error {
	resp, err := p.container.NewBlobClient(p.name).DownloadStream(ctx, nil)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// listBlobs lists the blobs of all runs of ProbeBlobs, up to one result page.
func (p *blobProbe) listBlobs(ctx context.Context) error {
	prefix := probeFolder
	page, err := p.container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}).NextPage(ctx)
	if err != nil {
		return err
	}
	for _, item := range page.Segment.BlobItems {
		if item.Name != nil && *item.Name != p.name && item.Properties != nil && item.Properties.LastModified != nil {
			p.others = append(p.others, probedBlob{*item.Name, *item.Properties.LastModified})
		}
	}
	return nil
}

// deleteBlobs deletes the blob of this run, and old blobs of earlier runs.
func (p *blobProbe) deleteBlobs(ctx context.Context) error {
	if _, err := p.container.NewBlobClient(p.name).Delete(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.BlobNotFound) {
		return err
	}
	for _, other := range p.others {
		if p.now.IsZero() || p.now.Sub(other.written) < maxProbeAge {
			continue
		}
		if _, err := p.container.NewBlobClient(other.name).Delete(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.BlobNotFound) {
			return err
		}
		p.removed++
	}
	return nil
}
