package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// A copyRecord describes the copy operation that created a blob.
type copyRecord struct {
	ID        string    `json:"id"`
	Source    string    `json:"source"` // URL of the source, without its shared access signature
	Completed time.Time `json:"completed"`
}

const maxCopySource = 2 << 10 // maxCopySource is the maximum length of the source URL in bytes, as on Azure

func (r *copyRecord) setProperties(h http.Header, size int64) {
	listed := r.list(size)
	h.Set("X-Ms-Copy-Id", listed.CopyID)
	h.Set("X-Ms-Copy-Source", listed.CopySource)
	h.Set("X-Ms-Copy-Status", listed.CopyStatus)
	h.Set("X-Ms-Copy-Progress", listed.CopyProgress)
	h.Set("X-Ms-Copy-Completion-Time", listed.CopyCompletionTime)
}

// A listedCopy is the XML form of a copyRecord.
type listedCopy struct {
	CopyID             string `xml:"CopyId"`
	CopyStatus         string
	CopySource         string
	CopyProgress       string
	CopyCompletionTime string
}

func (r *copyRecord) list(size int64) *listedCopy {
	return &listedCopy{
		CopyID: r.ID, CopySource: r.Source, CopyStatus: copySuccess,
		CopyProgress:       fmt.Sprintf("%d/%d", size, size),
		CopyCompletionTime: r.Completed.UTC().Format(http.TimeFormat),
	}
}

const copySuccess = "success"

// copyBlob copies a blob of this account. The response is sent after the copy is complete.
func (a *Account) copyBlob(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	metadata, err := readMetadata(c.Request)
	if err != nil {
		return nil, err
	}
	var target version
	if err := a.applyTier(&target, c.Header); err != nil {
		return nil, err
	}
	if err := c.conditions.checkWrite(found.findBlob(c.blob)); err != nil {
		return nil, err // fail before copying; publishVersion checks the conditions again
	}
	source, shown, err := a.openCopySource(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = source.content.Close() }() // no data can be lost, because the file is only read
	if target.Tier == "" {                        // an archived blob can only be copied to a different tier
		if err := source.checkArchived(); err != nil {
			return nil, err
		}
	}
	claimed, err := verifySource(c.Header, source)
	if err != nil {
		return nil, err
	}
	v, d, err := a.copyVersion(c, source)
	if err != nil {
		return nil, err
	}
	if metadata != nil {
		v.Metadata = metadata
	}
	v.Tier, v.TierChanged = target.Tier, target.TierChanged
	v.Copy = &copyRecord{ID: newCopyID(), Source: shown, Completed: a.options.Clock().UTC()}
	if err := a.publishVersion(c, found, newVersion{version: v, content: d, check: c.conditions.checkWrite}); err != nil {
		return nil, err
	}
	a.uploads.dropBlocks(found.uploadKey(c.blob))
	resp := newChangedResponse(http.StatusAccepted, v)
	resp.header.Set("X-Ms-Copy-Id", v.Copy.ID)
	resp.header.Set("X-Ms-Copy-Status", copySuccess)
	setMD5(resp.header, "Content-Md5", &version{MD5: claimed.md5})
	return resp, nil
}

// verifySource returns an error if the source of a copy does not have the checksums that the client has sent.
func verifySource(h http.Header, source *openedBlocks) (claimedChecksums, error) {
	claimed, err := readClaims(h, "X-Ms-Source-Content-Crc64", "X-Ms-Source-Content-Md5")
	if err != nil || claimed.isEmpty() {
		return claimed, err
	}
	sums := newChecksums()
	if _, err := io.Copy(sums, io.NewSectionReader(source.content, 0, source.size)); err != nil {
		return claimed, err
	}
	return claimed, claimed.verify(sums)
}

// newCopyID returns a new id for a copy, formatted as a GUID.
func newCopyID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // documented never to fail
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var copyID = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// openCopySource opens the source of a copy and checks the conditions on it. shown is the URL of the source without its
// shared access signature.
func (a *Account) openCopySource(c *blobCall) (_ *openedBlocks, shown string, err error) {
	text := c.Header.Get("X-Ms-Copy-Source")
	if len(text) > maxCopySource {
		return nil, "", newBlobError(400, "InvalidHeaderValue", "header x-ms-copy-source has more than %d bytes", maxCopySource)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, "", newBlobError(400, "InvalidHeaderValue", "header x-ms-copy-source: want the URL of a blob")
	}
	if !strings.EqualFold(u.Host, c.Host) || a.checkAccountName(u.Path) != nil {
		return nil, "", notImplemented("copies from other accounts: the source must begin with %s", a.endpointAt(c.urlScheme(), c.Host))
	}
	if err := a.checkCopyQuery(c, u); err != nil {
		return nil, "", err
	}
	container, blob, _ := splitPath(u.Path)
	source, ok := a.index.findContainer(container)
	if !ok {
		return nil, "", newBlobError(404, "CannotVerifyCopySource", "the container of the source does not exist")
	}
	opened, err := a.openBlocks(container, blob, source)
	if err != nil {
		return nil, "", err
	}
	if opened == nil {
		return nil, "", newBlobError(404, "CannotVerifyCopySource", "the source does not exist")
	}
	if err := checkCopyConditions(c.Header, opened.version); err != nil {
		return nil, "", errors.Join(err, opened.content.Close())
	}
	u.RawQuery, u.User, u.Fragment = "", nil, ""
	return opened, u.String(), nil
}

// checkCopyQuery refuses a source that is a snapshot or version, or that the client may not read. If the request uses a
// shared access signature, the source URL must have one, too.
func (a *Account) checkCopyQuery(c *blobCall, u *url.URL) error {
	query := u.Query()
	for _, name := range []string{"snapshot", "versionid"} {
		if query.Has(name) {
			return notImplemented("%ss as the source of a copy", strings.TrimSuffix(name, "id"))
		}
	}
	if !hasSharedAccess(query) {
		if c.access != nil {
			return accessError("CannotVerifyCopySource", "the URL of the source needs a shared access signature of its own")
		}
		return nil
	}
	access, err := a.readSharedAccess(u.Path, u.Scheme == "https", c.RemoteAddr, query)
	if err == nil {
		err = access.checkOperation(operation{nil, readPermission, "o"})
	}
	if err != nil {
		return newBlobError(http.StatusForbidden, "CannotVerifyCopySource",
			"This request is not authorized to perform this operation using this permission. The source: %s", err)
	}
	return nil
}

// checkCopyConditions checks the source conditions of a copy request.
func checkCopyConditions(h http.Header, source *version) error {
	conditions, err := readConditions(h, "X-Ms-Source-")
	if err != nil {
		return err
	}
	err = conditions.checkChange(source)
	if refused, ok := errors.AsType[*blobError](err); ok && refused.status == http.StatusPreconditionFailed {
		return newBlobError(http.StatusPreconditionFailed, "SourceConditionNotMet", "a condition on the source does not hold")
	}
	return err
}

// abortCopy always returns an error, because every copy is complete before its response.
func (a *Account) abortCopy(c *blobCall) (*blobResponse, error) {
	found, err := a.findContainer(c)
	if err != nil {
		return nil, err
	}
	id := c.query.Get("copyid")
	if !copyID.MatchString(id) {
		return nil, newBlobError(400, "InvalidQueryParameterValue", "copyid %.40q: want the id of a copy", id)
	}
	if found.findBlob(c.blob) == nil {
		return nil, blobNotFound()
	}
	return nil, newBlobError(http.StatusConflict, "NoPendingCopyOperation", "the copy %s is complete", id)
}
