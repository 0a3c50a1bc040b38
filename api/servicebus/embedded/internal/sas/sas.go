// Package sas checks shared access signatures. A shared access signature is a token which proves that
// a client knows a key. It is valid for one resource, until an expiry time.
//
//	SharedAccessSignature sr=<resource>&sig=<signature>&se=<expiry>&skn=<name>
//
// The resource is a URL. Only its path is compared, because a namespace may have several hosts.
// A token for a path is valid for all paths below it.
package sas

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Rights are the rights that a shared access key or a token grants.
type Rights uint8

// The rights.
const (
	Send Rights = 1 << iota
	Listen
	Manage

	All = Send | Listen | Manage
)

// Has reports whether r includes want.
func (r Rights) Has(want Rights) bool { return r&want == want }

// A Key is a shared secret.
type Key struct {
	Name   string
	Secret string
	Rights Rights
}

// A Claim is the access that a token or key grants.
type Claim struct {
	Path    string // in lower case, without slashes at either end; "" covers all paths
	Rights  Rights
	Expires time.Time // zero means that the claim does not expire
}

// Covers reports whether the claim grants want on path at time now.
func (c Claim) Covers(path string, want Rights, now time.Time) bool {
	path = Path(path)
	within := c.Path == "" || path == c.Path || strings.HasPrefix(path, c.Path+"/")
	return within && c.Rights.Has(want) && (c.Expires.IsZero() || now.Before(c.Expires))
}

// Path returns the path of a URL or address, formatted like Claim.Path.
func Path(address string) string {
	if _, rest, found := strings.Cut(address, "://"); found {
		_, address, _ = strings.Cut(rest, "/")
	}
	address, _, _ = strings.Cut(address, "?")
	return strings.ToLower(strings.Trim(address, "/"))
}

// resourcePath returns the path of the resource that a token names, without scheme and host. The scheme may be missing.
func resourcePath(resource string) string {
	if _, rest, found := strings.Cut(resource, "://"); found {
		resource = rest
	}
	_, path, _ := strings.Cut(resource, "/")
	return Path(path)
}

// String returns the rights, named as in Service Bus.
func (r Rights) String() string {
	names := make([]string, 0, 3)
	for right, name := range map[Rights]string{Send: "Send", Listen: "Listen", Manage: "Manage"} {
		if r.Has(right) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ",")
}

// Keys are the keys of one namespace.
type Keys []Key

// The reasons why a token is invalid. Clients depend on these texts.
var (
	ErrMalformed = errors.New("MalformedToken: the token is not a shared access signature")
	ErrSignature = errors.New("InvalidSignature: the token has an invalid signature")
	ErrExpired   = errors.New("ExpiredToken: The token is expired")
)

// Login returns the Claim of a client that knows the secret of a key.
func (k Keys) Login(name, secret string) (Claim, bool) {
	for _, key := range k {
		if key.Name == name && subtle.ConstantTimeCompare([]byte(key.Secret), []byte(secret)) == 1 {
			return Claim{Rights: key.Rights}, true
		}
	}
	return Claim{}, false
}

// Check verifies a token and returns its Claim.
func (k Keys) Check(token string, now time.Time) (Claim, error) {
	fields, found := strings.CutPrefix(token, "SharedAccessSignature ")
	if !found {
		return Claim{}, ErrMalformed
	}
	var resource, signature, expiry, name string
	for field := range strings.SplitSeq(fields, "&") {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "sr":
			resource = value
		case "sig":
			signature = value
		case "se":
			expiry = value
		case "skn":
			name = value
		}
	}
	decoded, err1 := url.QueryUnescape(resource)
	given, err2 := url.QueryUnescape(signature)
	name, err3 := url.QueryUnescape(name)
	seconds, err4 := strconv.ParseInt(expiry, 10, 64)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return Claim{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for _, key := range k {
		if key.Name != name || !hmac.Equal([]byte(given), []byte(signResource(key.Secret, resource, expiry))) {
			continue
		}
		expires := time.Unix(seconds, 0)
		if !now.Before(expires) {
			return Claim{}, fmt.Errorf("%w. Expiration time: %s", ErrExpired, expires.UTC().Format(time.RFC3339))
		}
		return Claim{Path: resourcePath(decoded), Rights: key.Rights, Expires: expires}, nil
	}
	return Claim{}, ErrSignature
}

// Sign returns a token for a resource that is valid until expires.
func (k Key) Sign(resource string, expires time.Time) string {
	sr := url.QueryEscape(strings.ToLower(resource))
	se := strconv.FormatInt(expires.Unix(), 10)
	return "SharedAccessSignature sr=" + sr + "&sig=" + url.QueryEscape(signResource(k.Secret, sr, se)) + "&se=" + se + "&skn=" + url.QueryEscape(k.Name)
}

// signResource returns the signature of a resource, which must be encoded as in the token.
func signResource(secret, resource, expiry string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(resource + "\n" + expiry))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
