package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// A Secret signs messages according to Standard Webhooks. It is either a secret shared with the
// receiver (v1), written as whsec_ followed by the Base64 of 24 to 64 bytes, or a private Ed25519
// key (v1a), written as whsk_ followed by the Base64 of the key. A Secret prints as asterisks.
type Secret struct {
	shared []byte
	key    ed25519.PrivateKey
}

const (
	sharedPrefix  = "whsec_"
	privatePrefix = "whsk_"
	publicPrefix  = "whpk_"

	minShared, maxShared = 24, 64 // bytes
)

// ParseSecret parses a secret. Its error is Invalid, and does not contain the text.
func ParseSecret(text string) (Secret, error) {
	if body, ok := strings.CutPrefix(text, privatePrefix); ok {
		key, err := base64.StdEncoding.DecodeString(body)
		switch {
		case err == nil && len(key) == ed25519.SeedSize:
			return Secret{key: ed25519.NewKeyFromSeed(key)}, nil
		case err == nil && len(key) == ed25519.PrivateKeySize:
			private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
			if private.Equal(ed25519.PrivateKey(key)) {
				return Secret{key: private}, nil
			}
		}
		return Secret{}, domain.Errorf(domain.Invalid, "secret: want %s and the Base64 of an Ed25519 key", privatePrefix)
	}
	body, ok := strings.CutPrefix(text, sharedPrefix)
	shared, err := base64.StdEncoding.DecodeString(body)
	if !ok || err != nil || len(shared) < minShared || len(shared) > maxShared {
		return Secret{}, domain.Errorf(domain.Invalid, "secret: want %s and the Base64 of %d to %d bytes", sharedPrefix, minShared, maxShared)
	}
	return Secret{shared: shared}, nil
}

// PublicKey returns the public key that verifies signatures of s, as text. It returns "" for a
// shared secret.
func (s Secret) PublicKey() string {
	if s.key == nil {
		return ""
	}
	return publicPrefix + base64.StdEncoding.EncodeToString(s.key[ed25519.SeedSize:])
}

// sign returns the version and the signature of head and body, or "" for the zero Secret.
func (s Secret) sign(head string, body []byte) string {
	switch {
	case s.key != nil:
		return "v1a," + base64.StdEncoding.EncodeToString(ed25519.Sign(s.key, append([]byte(head), body...)))
	case s.shared != nil:
		return "v1," + base64.StdEncoding.EncodeToString(hmacSHA256(s.shared, head, body))
	}
	return ""
}

func hmacSHA256(key []byte, head string, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(head))
	h.Write(body)
	return h.Sum(nil)
}

const hidden = "***"

// String returns asterisks.
func (s Secret) String() string { return hidden }

// GoString returns asterisks.
func (s Secret) GoString() string { return hidden }

// LogValue returns asterisks.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText returns asterisks.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
