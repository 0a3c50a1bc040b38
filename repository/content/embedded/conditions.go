package embedded

import (
	"net/http"
	"strings"
	"time"
)

// conditions are the conditions of a request on a blob.
type conditions struct {
	match, noneMatch                string // etags, or *
	modifiedSince, notModifiedSince time.Time
}

func readConditions(h http.Header) (conditions, error) {
	c := conditions{match: h.Get("If-Match"), noneMatch: h.Get("If-None-Match")}
	for name, t := range map[string]*time.Time{"If-Modified-Since": &c.modifiedSince, "If-Unmodified-Since": &c.notModifiedSince} {
		text := h.Get(name)
		if text == "" {
			continue
		}
		var err error
		if *t, err = http.ParseTime(text); err != nil {
			return c, newBlobError(400, "InvalidHeaderValue", "header %s: %q is not a date", name, text)
		}
	}
	for name, value := range map[string]string{"If-Match": c.match, "If-None-Match": c.noneMatch} {
		if strings.Contains(value, ",") {
			return c, newBlobError(400, "InvalidHeaderValue", "header %s: want one etag", name)
		}
	}
	return c, nil
}

// checkWrite returns an error unless a blob may be written or removed; v is nil if the blob
// does not exist. An existing blob with If-None-Match: * has another error code.
func (c conditions) checkWrite(v *version) error {
	if v != nil && c.noneMatch == "*" {
		return newBlobError(http.StatusConflict, "BlobAlreadyExists", "the blob exists already")
	}
	if !c.areMet(v) {
		return newBlobError(http.StatusPreconditionFailed, "ConditionNotMet", "a condition in the headers does not hold")
	}
	return nil
}

// checkRead returns an error unless v may be read.
func (c conditions) checkRead(v *version) error {
	if c.areMet(v) {
		return nil
	}
	if c.match == "" && c.notModifiedSince.IsZero() {
		return newBlobError(http.StatusNotModified, "ConditionNotMet", "the blob has not been modified")
	}
	return newBlobError(http.StatusPreconditionFailed, "ConditionNotMet", "a condition in the headers does not hold")
}

func (c conditions) areMet(v *version) bool {
	if v == nil {
		return c.match == "" && c.notModifiedSince.IsZero()
	}
	modified := v.Modified.Truncate(time.Second) // in the precision that clients see
	return (c.match == "" || c.match == "*" || isSameETag(c.match, v.ETag)) &&
		(c.noneMatch == "" || c.noneMatch != "*" && !isSameETag(c.noneMatch, v.ETag)) &&
		(c.modifiedSince.IsZero() || modified.After(c.modifiedSince)) &&
		(c.notModifiedSince.IsZero() || !modified.After(c.notModifiedSince))
}

// isSameETag compares etags as Azure does: some clients omit the quotes.
func isSameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }
