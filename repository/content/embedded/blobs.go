package embedded

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// putBlob writes a complete blob.
func (a *Account) putBlob(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	if kind := c.Header.Get("X-Ms-Blob-Type"); kind != "BlockBlob" {
		return nil, unsupportedType(kind)
	}
	v, err := readProperties(c.Request, true)
	if err != nil {
		return nil, err
	}
	if err := a.applyTier(v, c.Header); err != nil {
		return nil, err
	}
	if err := c.conditions.checkWrite(found.findBlob(c.blob)); err != nil {
		return nil, err // fail before reading the body; publishVersion checks the conditions again
	}
	claimed, err := readClaims(c.Header, "X-Ms-Content-Crc64", "X-Ms-Blob-Content-Md5", "Content-Md5")
	if err != nil {
		return nil, err
	}
	sums := newChecksums()
	d, _, err := a.receiveBody(c, sums, claimed)
	if err != nil {
		return nil, err
	}
	v.MD5 = sums.md5.Sum(nil)
	resp, err := a.respondToWrite(c, found, newVersion{version: v, content: d, check: c.conditions.checkWrite})
	if err != nil {
		return nil, err
	}
	a.uploads.dropBlocks(found.uploadKey(c.blob))
	resp.header.Set("X-Ms-Content-Crc64", sums.encodedCRC64())
	return resp, nil
}

// receiveBody stores the body of a call as a draft, and compares its checksums with those that the client has sent. If
// it fails, it removes the draft.
func (a *Account) receiveBody(c *blobCall, sums checksums, claimed claimedChecksums) (_ draftContent, n int64, err error) {
	switch {
	case c.ContentLength < 0:
		return nil, 0, newBlobError(http.StatusLengthRequired, "MissingContentLengthHeader", "the length of the content is missing")
	case c.ContentLength > a.options.MaxBlob:
		return nil, 0, newBlobError(http.StatusRequestEntityTooLarge, "RequestBodyTooLarge", "the content has %d bytes, more than %d", c.ContentLength, a.options.MaxBlob)
	}
	d, err := a.store.newDraft(c.ContentLength)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			d.discardDraft()
		}
	}()
	body := arrivingBody{contextReader{c.Context(), c.Body}}
	if n, err = io.Copy(io.MultiWriter(d, sums), body); err != nil {
		return nil, n, err
	}
	if n != c.ContentLength {
		return nil, n, errBroken
	}
	if err := claimed.verify(sums); err != nil {
		return nil, n, err
	}
	return d, n, d.finishWriting()
}

// errBroken reports that the client disconnected, or sent fewer bytes than announced.
var errBroken = newBlobError(400, "InvalidInput", "the content ended before its length")

// An arrivingBody returns errBroken for errors of reading the body, to distinguish them from disk errors.
type arrivingBody struct{ r io.Reader }

func (b arrivingBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBroken
	}
	return n, err
}

// errReplaced reports that another request has replaced the expected version.
var errReplaced = errors.New("another request has written the blob")

// A newVersion is a version that will be published as the current version of a blob.
type newVersion struct {
	*version
	content draftContent
	base    *version             // version that must still be current; nil permits any
	check   func(*version) error // checks the current version, which is nil if there is no blob

	isSilent     bool // do not call Options.Changed
	keepsETag    bool // retain the etag and modification time of base
	needsContent bool // fail if base is archived
}

// publishVersion makes n the current version of the call's blob, if n.check returns nil. If n.base is set but no longer
// current, it fails with errReplaced.
func (a *Account) publishVersion(c *blobCall, found *blobContainer, n newVersion) error {
	unlock, err := found.lockBlob(c.blob)
	if err != nil {
		n.content.discardDraft()
		return err
	}
	defer unlock()
	old := found.findBlob(c.blob)
	err = n.check(old)
	if err == nil && n.base != nil && n.base != old {
		err = errReplaced
	}
	if err != nil {
		n.content.discardDraft()
		return err
	}
	n.Name, n.ETag = c.blob, newETag()
	n.Modified = a.options.Clock().UTC()
	n.Created = n.Modified
	if old != nil {
		n.Created = old.Created
	}
	if n.keepsETag {
		n.ETag, n.Modified = n.base.ETag, n.base.Modified
	}
	if err := a.breakIfUnsettled(a.store.publishDraft(c.container, n.version, n.content)); err != nil {
		return err
	}
	found.blobs.Set(n.version)
	if !n.isSilent {
		a.reportChange(BlobCreated, c, n.version, n.Modified)
	}
	return nil
}

// respondToWrite publishes n and returns the response to a write.
func (a *Account) respondToWrite(c *blobCall, found *blobContainer, n newVersion) (*blobResponse, error) {
	if err := a.publishVersion(c, found, n); err != nil {
		return nil, err
	}
	resp := newChangedResponse(http.StatusCreated, n.version)
	setMD5(resp.header, "Content-Md5", n.version)
	resp.header.Set("X-Ms-Request-Server-Encrypted", "false")
	return resp, nil
}

// newChangedResponse returns a response with the etag and the modification time of v.
func newChangedResponse(status int, v *version) *blobResponse {
	resp := newResponse(status)
	(&version{ETag: v.ETag, Modified: v.Modified}).setProperties(resp.header)
	return resp
}

// breakIfUnsettled returns err. If err means that the state of the disk is unknown, the account refuses all later
// requests.
func (a *Account) breakIfUnsettled(err error) error {
	if _, ok := errors.AsType[unsettledError](err); ok {
		a.endService(err)
	}
	return err
}

// getBlob responds to a GET or HEAD request for a blob.
func (a *Account) getBlob(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	unlock, err := found.lockBlobToRead(c.blob)
	if err != nil {
		return nil, err
	}
	defer unlock()
	v := found.findBlob(c.blob)
	if v == nil {
		return nil, blobNotFound()
	}
	if err := c.conditions.checkRead(v); err != nil {
		return nil, err
	}
	if c.Method == http.MethodHead {
		resp := describeVersion(http.StatusOK, v)
		resp.header.Set("Content-Length", strconv.FormatInt(v.size, 10))
		setMD5(resp.header, "Content-Md5", v)
		return resp, nil
	}
	if err := v.checkArchived(); err != nil {
		return nil, err
	}
	part, err := readSpan(c.Header, v.size)
	if err != nil {
		return nil, err
	}
	file, err := a.store.openContent(c.container, v)
	if err != nil {
		return nil, err
	}
	resp := describeVersion(http.StatusOK, v)
	setMD5(resp.header, "X-Ms-Blob-Content-Md5", v)
	if part.whole {
		setMD5(resp.header, "Content-Md5", v)
	} else {
		resp.status = http.StatusPartialContent
		resp.header.Set("Content-Range", part.contentRange(v.size))
	}
	if err := setRangeChecksum(resp.header, c.Header, file, part); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	resp.body, resp.length = newContentPart(c.Context(), file, part.from, part.length), part.length
	return resp, nil
}

// describeVersion returns a response whose headers are the properties of v.
func describeVersion(status int, v *version) *blobResponse {
	resp := newResponse(status)
	v.setProperties(resp.header)
	for name, value := range v.Headers {
		resp.header.Set(name, value)
	}
	resp.header.Set("Accept-Ranges", "bytes")
	resp.header.Set("X-Ms-Creation-Time", v.Created.UTC().Format(http.TimeFormat))
	resp.header.Set("X-Ms-Blob-Type", "BlockBlob")
	resp.header.Set("X-Ms-Lease-Status", "unlocked")
	resp.header.Set("X-Ms-Lease-State", "available")
	resp.header.Set("X-Ms-Server-Encrypted", "false")
	v.setTierHeaders(resp.header)
	if v.Copy != nil {
		v.Copy.setProperties(resp.header, v.size)
	}
	return resp
}

func setMD5(h http.Header, name string, v *version) {
	if v.MD5 != nil {
		h.Set(name, base64.StdEncoding.EncodeToString(v.MD5))
	}
}

// deleteBlob removes a blob and its uncommitted blocks.
func (a *Account) deleteBlob(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	if what := c.Header.Get("X-Ms-Delete-Snapshots"); what != "" && what != "include" {
		return nil, notImplemented("deleting snapshots alone")
	}
	if err := a.removeBlob(c, found); err != nil {
		return nil, err
	}
	a.uploads.dropBlocks(found.uploadKey(c.blob))
	resp := newResponse(http.StatusAccepted)
	resp.header.Set("X-Ms-Delete-Type-Permanent", "true")
	return resp, nil
}

func (a *Account) removeBlob(c *blobCall, found *blobContainer) error {
	unlock, err := found.lockBlob(c.blob)
	if err != nil {
		return err
	}
	defer unlock()
	v := found.findBlob(c.blob)
	if v == nil {
		return blobNotFound()
	}
	if err := c.conditions.checkChange(v); err != nil {
		return err
	}
	if err := a.breakIfUnsettled(a.store.removeVersion(c.container, v)); err != nil {
		return err
	}
	found.blobs.Delete(v)
	a.reportChange(BlobDeleted, c, v, a.options.Clock().UTC())
	return nil
}

func blobNotFound() error { return newBlobError(404, "BlobNotFound", "the blob does not exist") }
