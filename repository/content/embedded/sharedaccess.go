package embedded

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// sharedAccessParameters are the query parameters that may be part of a shared access signature.
var sharedAccessParameters = []string{
	"sp", "st", "se", "si", "sip", "spr", "sv", "sr", "ses", "ss", "srt", "rscc", "rscd", "rsce", "rscl", "rsct", "sig",
}

// overrides maps the parameters of a service SAS to the response headers that they set.
var overrides = map[string]string{
	"rscc": "Cache-Control", "rscd": "Content-Disposition", "rsce": "Content-Encoding", "rscl": "Content-Language", "rsct": "Content-Type",
}

// unsupportedAccess maps parameters of shared access signatures to the unsupported features that they request.
var unsupportedAccess = map[string]string{
	"si": "a stored access policy (si)", "ses": "an encryption scope (ses)",
	"skoid": "a user's key (skoid)", "sktid": "a user's key (sktid)", "saoid": "a user's key (saoid)", "sdd": "a directory (sdd)",
}

const (
	minSharedAccess   = "2015-04-05" // first version that signs the protocol and the range of addresses
	kindSharedAccess  = "2018-11-09" // first version that signs the kind of resource (sr)
	scopeSharedAccess = "2020-12-06" // first version that signs the encryption scope
)

// A sharedAccess is the access that a shared access signature grants.
type sharedAccess struct {
	permissions string
	resources   string      // resource types (srt) of an account SAS, or resource of a service SAS (b or c)
	isAccount   bool        // true for an account SAS
	set         http.Header // response headers that the signature sets
}

// hasSharedAccess reports whether a query has the parameters of a shared access signature.
func hasSharedAccess(query url.Values) bool {
	return query.Has("sig") || query.Has("sv") || query.Has("sp") || query.Has("se")
}

// readSharedAccess verifies the shared access signature in query, and removes its parameters from query. path is the
// path of the request, address is the client's address.
func (a *Account) readSharedAccess(path string, isTLS bool, address string, query url.Values) (*sharedAccess, error) {
	for _, name := range sharedAccessParameters {
		if len(query[name]) > 1 {
			return nil, forbiddenError("its shared access signature has %s twice", name)
		}
	}
	for _, name := range []string{"sig", "sv", "sp", "se"} {
		if query.Get(name) == "" && !query.Has("si") {
			return nil, forbiddenError("its shared access signature has no %s", name)
		}
	}
	for name, feature := range unsupportedAccess {
		if query.Has(name) {
			return nil, forbiddenError("its shared access signature has %s, which this account does not support", feature)
		}
	}
	get := query.Get
	switch {
	case get("sv") < minSharedAccess:
		return nil, forbiddenError("its shared access signature has the version %.20q; want one from %s on", get("sv"), minSharedAccess)
	case get("spr") != "" && get("spr") != "https" && get("spr") != "https,http":
		return nil, forbiddenError("its shared access signature has the protocol (spr) %.20q; want https, or https,http", get("spr"))
	case get("spr") == "https" && !isTLS:
		return nil, accessError("AuthorizationProtocolMismatch", "its shared access signature is for https only (spr)")
	}
	if err := checkLinkTimes(get("st"), get("se")); err != nil {
		return nil, err
	}
	if err := checkLinkAddress(get("sip"), address); err != nil {
		return nil, err
	}
	access := &sharedAccess{permissions: get("sp"), resources: get("sr"), isAccount: query.Has("ss") || query.Has("srt"), set: http.Header{}}
	var signed string
	var err error
	if access.isAccount {
		access.resources = get("srt")
		signed, err = a.accountAccess(query)
	} else {
		signed, err = a.serviceAccess(path, query)
	}
	if err != nil {
		return nil, err
	}
	given, err := base64.StdEncoding.DecodeString(get("sig"))
	if err != nil {
		return nil, forbiddenError("its signature is not base64")
	}
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(signed))
	if !hmac.Equal(given, mac.Sum(nil)) {
		return nil, forbiddenError("its signature is not that of the account's key")
	}
	for name, header := range overrides {
		if value := get(name); value != "" && !access.isAccount {
			access.set.Set(header, value)
		}
	}
	for _, name := range sharedAccessParameters {
		query.Del(name)
	}
	return access, nil
}

// accountAccess returns the text that is signed for an account SAS.
func (a *Account) accountAccess(query url.Values) (string, error) {
	get := query.Get
	switch {
	case query.Has("sr"):
		return "", forbiddenError("its shared access signature is for an account (ss, srt) and for one resource (sr)")
	case !strings.Contains(get("ss"), "b"):
		return "", accessError("AuthorizationServiceMismatch", "its shared access signature is for the services (ss) %.10q, without b for blobs", get("ss"))
	}
	lines := []string{a.options.Account, get("sp"), get("ss"), get("srt"), get("st"), get("se"), get("sip"), get("spr"), get("sv")}
	if get("sv") >= scopeSharedAccess {
		lines = append(lines, "")
	}
	return strings.Join(lines, "\n") + "\n", nil
}

// serviceAccess returns the text that is signed for a service SAS. path is the path of the request.
func (a *Account) serviceAccess(path string, query url.Values) (string, error) {
	get := query.Get
	container, blob, _ := strings.Cut(strings.TrimPrefix(path, "/"+a.options.Account+"/"), "/")
	resource := "/blob/" + a.options.Account + "/" + container
	switch get("sr") {
	case "b":
		if blob == "" {
			return "", accessError("AuthorizationResourceTypeMismatch", "its shared access signature is for a blob (sr=b), and the path is that of a container")
		}
		resource += "/" + blob
	case "c":
	case "bs", "bv", "d":
		return "", forbiddenError("its shared access signature is for a snapshot, a version or a directory (sr=%s), which this account does not support", get("sr"))
	default:
		return "", forbiddenError("its shared access signature is for the resource (sr) %.10q; want b for a blob, or c for a container", get("sr"))
	}
	lines := []string{get("sp"), get("st"), get("se"), resource, "", get("sip"), get("spr"), get("sv")}
	if get("sv") >= kindSharedAccess {
		lines = append(lines, get("sr"), "")
	}
	if get("sv") >= scopeSharedAccess {
		lines = append(lines, "")
	}
	lines = append(lines, get("rscc"), get("rscd"), get("rsce"), get("rscl"), get("rsct"))
	return strings.Join(lines, "\n"), nil
}

// accessError returns the error for a valid shared access signature that does not permit the request.
func accessError(code, format string, args ...any) error {
	return newBlobError(http.StatusForbidden, code, "the request was refused: "+format, args...)
}

// checkOperation returns an error if the signature does not permit an operation.
func (s *sharedAccess) checkOperation(o operation) error {
	switch {
	case s.isAccount && o.resource != "" && !strings.Contains(s.resources, o.resource):
		return accessError("AuthorizationResourceTypeMismatch", "its shared access signature is for the resources (srt) %.10q, and the request needs %s", s.resources, o.resource)
	case !s.isAccount && !o.isForService(s.resources):
		return accessError("AuthorizationFailure", "only a shared access signature of the account permits this request, or the account's key")
	case !strings.ContainsAny(s.permissions, o.permissions):
		return accessError("AuthorizationPermissionMismatch", "its shared access signature has the permissions (sp) %.20q, and the request needs %s", s.permissions, strings.Join(strings.Split(o.permissions, ""), " or "))
	}
	return nil
}

// isForService reports whether a service SAS for resource (b or c) can permit an operation.
func (o operation) isForService(resource string) bool {
	isList := o.resource == "c" && o.permissions == listPermission
	return o.resource == "o" || o.resource == "" || isList && resource == "c"
}

// canOverwrite reports whether the signature permits overwriting an existing blob.
func (s *sharedAccess) canOverwrite() bool { return strings.Contains(s.permissions, writePermission) }

// checkLinkAddress returns an error if the client's address is outside the range sip. The address may have a port. An
// empty sip permits every address.
func checkLinkAddress(sip, address string) error {
	if sip == "" {
		return nil
	}
	first, last, isRange := strings.Cut(sip, "-")
	if !isRange {
		last = first
	}
	from, err := netip.ParseAddr(first)
	to, errTo := netip.ParseAddr(last)
	if err != nil || errTo != nil || !from.Is4() || !to.Is4() {
		return forbiddenError("its shared access signature has the range of addresses (sip) %.40q; want an IPv4 address, or two with a dash between them", sip)
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	client, err := netip.ParseAddr(address)
	if client = client.Unmap(); err != nil || client.Less(from) || to.Less(client) {
		return accessError("AuthorizationSourceIPMismatch", "its shared access signature is for the addresses (sip) %.40s, and the request comes from %.60s", sip, address)
	}
	return nil
}

// checkLinkTimes returns an error if the link is not valid now: its validity begins at st, if st is not
// empty, and ends at se.
func checkLinkTimes(st, se string) error {
	now := time.Now()
	if st != "" {
		start, err := parseLinkTime(st)
		if err != nil {
			return forbiddenError("its shared access signature has the start (st) %.40q, which is not a time", st)
		}
		if now.Before(start) {
			return forbiddenError("its shared access signature is not valid before %s (st)", start.UTC().Format(time.RFC3339))
		}
	}
	end, err := parseLinkTime(se)
	if err != nil {
		return forbiddenError("its shared access signature has the end (se) %.40q, which is not a time", se)
	}
	if !now.Before(end) {
		return forbiddenError("its shared access signature has expired at %s (se)", end.UTC().Format(time.RFC3339))
	}
	return nil
}

// parseLinkTime parses a time in any of the formats that a shared access signature may use.
func parseLinkTime(text string) (t time.Time, err error) {
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", time.DateOnly} {
		if t, err = time.Parse(form, text); err == nil {
			return t, nil
		}
	}
	return t, err
}
