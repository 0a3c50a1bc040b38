package embedded

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// sharedAccess are the parameters of a service SAS, in the order in which they are signed. The
// canonical name and the snapshot time are signed between them.
var sharedAccess = []string{"sp", "st", "se", "si", "sip", "spr", "sv", "sr", "ses", "rscc", "rscd", "rsce", "rscl", "rsct", "sig"}

// overrides are the headers that a service SAS sets in the answer, by its parameters.
var overrides = map[string]string{
	"rscc": "Cache-Control", "rscd": "Content-Disposition", "rsce": "Content-Encoding", "rscl": "Content-Language", "rsct": "Content-Type",
}

// minSharedAccess is the first version in which the encryption scope is signed.
const minSharedAccess = "2020-12-06"

// authorizeLink refuses a request unless its query has a valid service SAS for reading one
// blob. It removes the SAS from query, and returns the headers that the SAS sets.
func (a *Account) authorizeLink(r *http.Request, query url.Values) (http.Header, error) {
	for _, name := range sharedAccess {
		if len(query[name]) > 1 {
			return nil, forbiddenError("its shared access signature has %s twice", name)
		}
	}
	get := query.Get
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead, get("sr") != "b", get("sp") != "r", query.Has("comp"), query.Has("restype"):
		return nil, forbiddenError("shared access signatures of this account permit only reading one blob (sr=b, sp=r)")
	case get("sv") < minSharedAccess:
		return nil, forbiddenError("its shared access signature has the version %.20q; want one from %s on", get("sv"), minSharedAccess)
	case query.Has("si") || query.Has("sip") || query.Has("ses") || query.Has("skoid"):
		return nil, forbiddenError("its shared access signature has a policy, a range of addresses, an encryption scope or a user, which this account does not support")
	case get("spr") != "" && get("spr") != "https" && get("spr") != "https,http", get("spr") == "https" && r.TLS == nil:
		return nil, forbiddenError("its shared access signature is for https only")
	}
	if err := checkLinkTimes(get("st"), get("se")); err != nil {
		return nil, err
	}
	given, err := base64.StdEncoding.DecodeString(get("sig"))
	if err != nil {
		return nil, forbiddenError("its signature is not base64")
	}
	lines := []string{
		get("sp"), get("st"), get("se"), "/blob" + r.URL.Path, "", "", get("spr"), get("sv"), get("sr"), "", "",
		get("rscc"), get("rscd"), get("rsce"), get("rscl"), get("rsct"),
	}
	mac := hmac.New(sha256.New, a.key)
	mac.Write([]byte(strings.Join(lines, "\n")))
	if !hmac.Equal(given, mac.Sum(nil)) {
		return nil, forbiddenError("its signature is not that of the account's key")
	}
	set := http.Header{}
	for name, header := range overrides {
		if value := get(name); value != "" {
			set.Set(header, value)
		}
	}
	for _, name := range sharedAccess {
		query.Del(name)
	}
	return set, nil
}

// checkLinkTimes refuses a time before st, if there is one, or after se.
func checkLinkTimes(st, se string) error {
	now := time.Now()
	if st != "" {
		if start, err := time.Parse(time.RFC3339, st); err != nil || now.Before(start) {
			return forbiddenError("its shared access signature is not valid yet")
		}
	}
	if end, err := time.Parse(time.RFC3339, se); err != nil || !now.Before(end) {
		return forbiddenError("its shared access signature has expired, or has no expiry time")
	}
	return nil
}
