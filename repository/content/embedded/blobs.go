package embedded

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// putBlob writes a blob with one request.
func (a *Account) putBlob(c *blobCall) (*blobAnswer, error) {
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
		return nil, err // before the content is read, if possible
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
	answered, err := a.answerWritten(c, found, newVersion{version: v, content: d, check: c.conditions.checkWrite})
	if err != nil {
		return nil, err
	}
	a.uploads.dropBlocks(found.uploadKey(c.blob))
	answered.header.Set("X-Ms-Content-Crc64", sums.encodedCRC64())
	return answered, nil
}

// receiveBody stores the body of a call as a draft, and compares its checksums with those that the
// client has sent. If it fails, it removes the draft.
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

// errBroken reports that the client disconnected or sent a wrong length.
var errBroken = newBlobError(400, "InvalidInput", "the content ended before its length")

// An arrivingBody marks errors of reading the body, to distinguish them from errors of the
// disk.
type arrivingBody struct{ r io.Reader }

func (b arrivingBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errBroken
	}
	return n, err
}

// errReplaced reports that another version than the expected one is current.
var errReplaced = errors.New("the blob was written meanwhile")

// A newVersion is to become the version of a call's blob.
type newVersion struct {
	*version
	content draftContent
	base    *version             // version that must be current; nil if any may be
	check   func(*version) error // checks the current version, which is nil if there is no blob

	isSilent     bool // no event is reported
	keepsETag    bool // the etag and the time of the last change are those of base
	needsContent bool // base may not be archived
}

// publishVersion makes n the version of the call's blob, if its check succeeds. If n.base is not
// nil and is not the current version, it fails with errReplaced.
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

// answerWritten publishes n and answers a write.
func (a *Account) answerWritten(c *blobCall, found *blobContainer, n newVersion) (*blobAnswer, error) {
	if err := a.publishVersion(c, found, n); err != nil {
		return nil, err
	}
	answered := answerChanged(http.StatusCreated, n.version)
	setMD5(answered.header, "Content-Md5", n.version)
	answered.header.Set("X-Ms-Request-Server-Encrypted", "false")
	return answered, nil
}

// answerChanged returns an answer with the etag and time of v.
func answerChanged(status int, v *version) *blobAnswer {
	answered := newAnswer(status)
	(&version{ETag: v.ETag, Modified: v.Modified}).setProperties(answered.header)
	return answered
}

// breakIfUnsettled ends all service if err means that the state of the disk is unknown.
func (a *Account) breakIfUnsettled(err error) error {
	if _, ok := errors.AsType[unsettledError](err); ok {
		a.endService(err)
	}
	return err
}

// getBlob answers GET and HEAD.
func (a *Account) getBlob(c *blobCall) (*blobAnswer, error) {
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
		answered := describeVersion(http.StatusOK, v)
		answered.header.Set("Content-Length", strconv.FormatInt(v.size, 10))
		setMD5(answered.header, "Content-Md5", v)
		return answered, nil
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
	answered := describeVersion(http.StatusOK, v)
	setMD5(answered.header, "X-Ms-Blob-Content-Md5", v)
	if part.whole {
		setMD5(answered.header, "Content-Md5", v)
	} else {
		answered.status = http.StatusPartialContent
		answered.header.Set("Content-Range", part.contentRange(v.size))
	}
	if err := setRangeChecksum(answered.header, c.Header, file, part); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	answered.body, answered.length = newContentPart(c.Context(), file, part.from, part.length), part.length
	return answered, nil
}

// describeVersion returns an answer with the properties of v.
func describeVersion(status int, v *version) *blobAnswer {
	answered := newAnswer(status)
	v.setProperties(answered.header)
	for name, value := range v.Headers {
		answered.header.Set(name, value)
	}
	answered.header.Set("Accept-Ranges", "bytes")
	answered.header.Set("X-Ms-Creation-Time", v.Created.UTC().Format(http.TimeFormat))
	answered.header.Set("X-Ms-Blob-Type", "BlockBlob")
	answered.header.Set("X-Ms-Lease-Status", "unlocked")
	answered.header.Set("X-Ms-Lease-State", "available")
	answered.header.Set("X-Ms-Server-Encrypted", "false")
	v.setTierHeaders(answered.header)
	if v.Copy != nil {
		v.Copy.setProperties(answered.header, v.size)
	}
	return answered
}

func setMD5(h http.Header, name string, v *version) {
	if v.MD5 != nil {
		h.Set(name, base64.StdEncoding.EncodeToString(v.MD5))
	}
}

// deleteBlob removes a blob and its uncommitted blocks.
func (a *Account) deleteBlob(c *blobCall) (*blobAnswer, error) {
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
	answered := newAnswer(http.StatusAccepted)
	answered.header.Set("X-Ms-Delete-Type-Permanent", "true")
	return answered, nil
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
