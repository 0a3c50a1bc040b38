package webhook

import (
	"cmp"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/messagehub/messagehub/domain"
)

// A Verifier verifies calls as a receiver should. It is safe for concurrent use.
type Verifier struct {
	// Keys verify the signatures of Standard Webhooks. One of the signatures of a call must be
	// valid for one of the keys, so that a secret can be replaced.
	Keys []VerifyKey

	// HMACKeys verify the Authorization header, which must be valid for one of the keys. If a
	// Verifier has Keys and HMACKeys, both signatures of a call must be valid.
	HMACKeys []Key

	Tolerance time.Duration // maximum age of a call, and maximum time in the future; default 5 minutes
}

// DefaultTolerance is the default of Tolerance.
const DefaultTolerance = 5 * time.Minute

// A Scheme is a method of signing calls.
type Scheme string

// The schemes.
const (
	SchemeShared  Scheme = "v1"          // Standard Webhooks with a shared secret
	SchemeKeyPair Scheme = "v1a"         // Standard Webhooks with a key pair
	SchemeHMAC    Scheme = "hmac-sha256" // HMAC of date and digest in the Authorization header
)

// HasKeys reports whether v has at least one key.
func (v *Verifier) HasKeys() bool { return len(v.Keys) > 0 || len(v.HMACKeys) > 0 }

// Verify returns the schemes whose signatures in a call are valid. It fails with Invalid if v has
// no keys, or if the call was not signed with them. The error contains no secrets.
func (v *Verifier) Verify(h http.Header, body []byte, now time.Time) ([]Scheme, error) {
	if !v.HasKeys() {
		return nil, domain.Errorf(domain.Invalid, "no secret is given to verify it with")
	}
	tolerance := cmp.Or(v.Tolerance, DefaultTolerance)
	var schemes []Scheme
	if len(v.Keys) > 0 {
		s, err := verifySignatures(v.Keys, h, body, now, tolerance)
		if err != nil {
			return nil, err
		}
		schemes = append(schemes, s)
	}
	if len(v.HMACKeys) > 0 {
		if err := verifyAuthorization(v.HMACKeys, h, body, now, tolerance); err != nil {
			return nil, err
		}
		schemes = append(schemes, SchemeHMAC)
	}
	return schemes, nil
}

// maxSignatures is the maximum number of signatures that Verify checks in one call. The limit
// exists because each check costs time.
const maxSignatures = 16

func verifySignatures(keys []VerifyKey, h http.Header, body []byte, now time.Time, tolerance time.Duration) (Scheme, error) {
	id, timestamp, signatures := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), strings.Fields(h.Get("Webhook-Signature"))
	switch {
	case id == "":
		return "", domain.Errorf(domain.Invalid, "it has no webhook-id")
	case len(signatures) == 0:
		return "", domain.Errorf(domain.Invalid, "it has no webhook-signature")
	case len(signatures) > maxSignatures:
		return "", domain.Errorf(domain.Invalid, "webhook-signature: want at most %d signatures, got %d", maxSignatures, len(signatures))
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return "", domain.Errorf(domain.Invalid, "webhook-timestamp: want the seconds since 1970, got %q", domain.Shorten(timestamp))
	}
	if err := checkAge("webhook-timestamp", time.Unix(seconds, 0), now, tolerance); err != nil {
		return "", err
	}
	head := id + "." + timestamp + "."
	for _, text := range signatures {
		for _, key := range keys {
			if s := key.verify(text, head, body); s != "" {
				return s, nil
			}
		}
	}
	return "", domain.Errorf(domain.Invalid, "none of its signatures is valid; it was changed, or signed with another secret")
}

func verifyAuthorization(keys []Key, h http.Header, body []byte, now time.Time, tolerance time.Duration) error {
	parameters, isSignature := strings.CutPrefix(h.Get("Authorization"), "Signature ")
	if !isSignature {
		return domain.Errorf(domain.Invalid, "it has no Authorization of the scheme Signature")
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return domain.Errorf(domain.Invalid, "Date: want a date of HTTP, got %q", domain.Shorten(h.Get("Date")))
	}
	if err := checkAge("Date", date, now, tolerance); err != nil {
		return err
	}
	digest := sha256.Sum256(body)
	if h.Get("Digest") != "SHA-256="+base64.StdEncoding.EncodeToString(digest[:]) {
		return domain.Errorf(domain.Invalid, "Digest: want the SHA-256 of the body; the body or the header was changed")
	}
	got, err := base64.StdEncoding.DecodeString(signatureParameter(parameters))
	if err != nil || len(got) == 0 {
		return domain.Errorf(domain.Invalid, "Authorization: want a signature in Base64")
	}
	text := "date: " + h.Get("Date") + "\ndigest: " + h.Get("Digest")
	for _, key := range keys {
		if key != "" && hmac.Equal(got, hmacSHA256([]byte(key), text, nil)) {
			return nil
		}
	}
	return domain.Errorf(domain.Invalid, "the signature in Authorization is not valid; Date or Digest was changed, or it was signed with another key")
}

// signatureParameter returns the parameter called signature of an Authorization header, whose
// parameters are quoted and separated by commas. It returns "" if the parameter is missing.
func signatureParameter(parameters string) string {
	for parameters != "" {
		name, rest, ok := strings.Cut(parameters, `="`)
		if !ok {
			return ""
		}
		var value strings.Builder
		end := -1
		for i := 0; i < len(rest); i++ {
			if rest[i] == '\\' && i+1 < len(rest) {
				i++
			} else if rest[i] == '"' {
				end = i
				break
			}
			value.WriteByte(rest[i])
		}
		switch {
		case end < 0:
			return ""
		case strings.Trim(name, ", ") == "signature":
			return value.String()
		}
		parameters = rest[end+1:]
	}
	return ""
}

// checkAge refuses a call that is too old or too far in the future, and thus most replayed calls.
func checkAge(header string, sent, now time.Time, tolerance time.Duration) error {
	if age := now.Sub(sent); age > tolerance {
		return domain.Errorf(domain.Invalid, "%s: it is %s old, more than %s", header, age.Truncate(time.Second), tolerance)
	} else if -age > tolerance {
		return domain.Errorf(domain.Invalid, "%s: it is %s in the future, more than %s; compare the clocks", header, (-age).Truncate(time.Second), tolerance)
	}
	return nil
}

// A VerifyKey verifies the signatures of a Secret: it is the same shared secret (v1) or the public
// key (v1a). It prints as asterisks.
type VerifyKey struct {
	shared []byte
	public ed25519.PublicKey
}

// ParseVerifyKey parses a key: a shared secret, or whpk_ and the Base64 of an Ed25519 public key.
// Its error is Invalid, and does not contain the text.
func ParseVerifyKey(text string) (VerifyKey, error) {
	if body, ok := strings.CutPrefix(text, publicPrefix); ok {
		key, err := base64.StdEncoding.DecodeString(body)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return VerifyKey{}, domain.Errorf(domain.Invalid, "key: want %s and the Base64 of an Ed25519 public key", publicPrefix)
		}
		return VerifyKey{public: key}, nil
	}
	s, err := ParseSecret(text)
	if err != nil {
		return VerifyKey{}, err
	}
	return s.VerifyKey(), nil
}

// VerifyKey returns the key that verifies the signatures of s.
func (s Secret) VerifyKey() VerifyKey {
	if s.key == nil {
		return VerifyKey{shared: s.shared}
	}
	public, _ := s.key.Public().(ed25519.PublicKey)
	return VerifyKey{public: public}
}

// verify checks a signature of head and body, and returns its scheme. It returns "" if the signature
// is invalid. A signature starts with its version; a signature of an unknown version is invalid.
func (k VerifyKey) verify(signature, head string, body []byte) Scheme {
	version, text, _ := strings.Cut(signature, ",")
	got, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return ""
	}
	switch version {
	case string(SchemeShared):
		if k.shared != nil && subtle.ConstantTimeCompare(got, hmacSHA256(k.shared, head, body)) == 1 {
			return SchemeShared
		}
	case string(SchemeKeyPair):
		if k.public != nil && ed25519.Verify(k.public, append([]byte(head), body...), got) {
			return SchemeKeyPair
		}
	}
	return ""
}

// String returns asterisks.
func (k VerifyKey) String() string { return hidden }

// GoString returns asterisks.
func (k VerifyKey) GoString() string { return hidden }

// LogValue returns asterisks.
func (k VerifyKey) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns asterisks.
func (k VerifyKey) MarshalText() ([]byte, error) { return []byte(hidden), nil }
