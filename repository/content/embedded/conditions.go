package embedded

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// conditions are the conditions of a request on a blob.
type conditions struct {
	match, noneMatch                etagList
	modifiedSince, notModifiedSince time.Time

	isCreateOnly bool // true if the client must not overwrite an existing blob
}

// An etagList contains the etags in one condition. The zero value means that the request lacks this condition.
type etagList struct {
	any   bool // true if the list is *
	etags []string
}

const maxETags = 100 // maxETags is the maximum number of etags in one condition

// readConditions reads the conditions from headers whose names begin with prefix.
func readConditions(h http.Header, prefix string) (c conditions, err error) {
	for name, t := range map[string]*time.Time{"If-Modified-Since": &c.modifiedSince, "If-Unmodified-Since": &c.notModifiedSince} {
		text := h.Get(prefix + name)
		if text == "" {
			continue
		}
		if *t, err = http.ParseTime(text); err != nil {
			return c, newBlobError(400, "InvalidHeaderValue", "header %s%s: %.60q is not a date", prefix, name, text)
		}
	}
	for name, list := range map[string]*etagList{"If-Match": &c.match, "If-None-Match": &c.noneMatch} {
		if *list, err = readETags(prefix+name, h.Get(prefix+name)); err != nil {
			return c, err
		}
	}
	return c, nil
}

// readETags parses either * or a list of etags. The etags may be quoted.
func readETags(header, text string) (etagList, error) {
	switch text = strings.TrimSpace(text); text {
	case "":
		return etagList{}, nil
	case "*":
		return etagList{any: true}, nil
	}
	if strings.Count(text, ",") >= maxETags {
		return etagList{}, newBlobError(400, "InvalidHeaderValue", "header %s: it has more than %d etags", header, maxETags)
	}
	var list etagList
	for etag := range strings.SplitSeq(text, ",") {
		etag = strings.TrimSpace(etag)
		list.any = list.any || etag == "*"
		list.etags = append(list.etags, etag)
	}
	return list, nil
}

func (l etagList) isEmpty() bool { return !l.any && len(l.etags) == 0 }

// hasETag reports whether the list contains etag. It does not consider *.
func (l etagList) hasETag(etag string) bool {
	return slices.ContainsFunc(l.etags, func(listed string) bool { return isSameETag(listed, etag) })
}

// checkWrite returns an error unless the conditions permit writing a blob whose current version is v. For a missing
// blob, v is nil. If a blob exists, If-None-Match: * fails with BlobAlreadyExists.
func (c conditions) checkWrite(v *version) error {
	if v != nil && c.isCreateOnly {
		return accessError("UnauthorizedBlobOverwrite", "the blob exists, and the shared access signature permits only creating (sp=c)")
	}
	if v != nil && c.noneMatch.any {
		return newBlobError(http.StatusConflict, "BlobAlreadyExists", "the blob exists already")
	}
	return c.checkChange(v)
}

// checkChange returns an error unless the conditions permit changing or deleting a blob whose current version is v. For
// a missing blob, v is nil. As on Azure, If-None-Match: * is met, and each condition may have only one etag.
func (c conditions) checkChange(v *version) error {
	switch {
	case len(c.match.etags) > 1 || len(c.noneMatch.etags) > 1:
		return newBlobError(400, "MultipleConditionHeadersNotSupported", "If-Match and If-None-Match of a write have one etag")
	case v == nil && (!c.match.isEmpty() || !c.notModifiedSince.IsZero()),
		v != nil && (!c.isMatched(v) || c.noneMatch.hasETag(v.ETag) || !c.isModifiedSince(v)):
		return newBlobError(http.StatusPreconditionFailed, "ConditionNotMet", "a condition in the headers does not hold")
	}
	return nil
}

// checkRead returns an error unless the conditions permit reading v. As on Azure, if a request has If-None-Match and
// If-Modified-Since, one of them must be met.
func (c conditions) checkRead(v *version) error {
	isOther := !c.noneMatch.hasETag(v.ETag)
	switch {
	case c.noneMatch.any:
		return newBlobError(400, "UnsatisfiableCondition", "a read cannot meet the condition If-None-Match: *")
	case !c.isMatched(v):
		return newBlobError(http.StatusPreconditionFailed, "ConditionNotMet", "a condition in the headers does not hold")
	case c.noneMatch.isEmpty() && !c.isModifiedSince(v),
		!isOther && (c.modifiedSince.IsZero() || !c.isModifiedSince(v)):
		return newBlobError(http.StatusNotModified, "ConditionNotMet", "the blob has not been modified")
	}
	return nil
}

// isMatched reports whether v meets If-Match and If-Unmodified-Since.
func (c conditions) isMatched(v *version) bool {
	return (c.match.isEmpty() || c.match.any || c.match.hasETag(v.ETag)) &&
		(c.notModifiedSince.IsZero() || !visibleTime(v).After(c.notModifiedSince))
}

// isModifiedSince reports whether v meets If-Modified-Since.
func (c conditions) isModifiedSince(v *version) bool {
	return c.modifiedSince.IsZero() || visibleTime(v).After(c.modifiedSince)
}

// visibleTime returns the modification time of v rounded down to seconds, as clients see it.
func visibleTime(v *version) time.Time { return v.Modified.Truncate(time.Second) }

// isSameETag compares etags without their quotes, because some clients omit quotes.
func isSameETag(a, b string) bool { return strings.Trim(a, `"`) == strings.Trim(b, `"`) }
