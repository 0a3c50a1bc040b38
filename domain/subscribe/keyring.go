package subscribe

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"log/slog"
	"strings"

	"github.com/messagehub/messagehub/domain"
)

// KeySize is the size of a Keyring's keys, in bytes.
const KeySize = 32

// A Keyring encrypts secrets with AES-256-GCM. An encrypted secret names its key, so that keys can
// be rotated: the Keyring encrypts with its first key, and decrypts with any of its keys. It prints
// as ***.
type Keyring struct {
	first string
	keys  map[string]cipher.AEAD
}

// NewKeyring returns a Keyring with keys of [KeySize] bytes. It fails with Invalid if keys is
// empty, or if a key does not have this size.
func NewKeyring(keys ...[]byte) (*Keyring, error) {
	k := &Keyring{keys: make(map[string]cipher.AEAD)}
	for i, key := range keys {
		if len(key) != KeySize {
			return nil, domain.Errorf(domain.Invalid, "key %d: want %d bytes, got %d", i, KeySize, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, domain.Errorf(domain.Invalid, "key %d: %w", i, err)
		}
		sealer, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, domain.Errorf(domain.Invalid, "key %d: %w", i, err)
		}
		name := keyName(key)
		if i == 0 {
			k.first = name
		}
		k.keys[name] = sealer
	}
	if len(keys) == 0 {
		return nil, domain.Errorf(domain.Invalid, "want a key to seal secrets")
	}
	return k, nil
}

// NewKey returns a random key of [KeySize] bytes.
func NewKey() []byte {
	key := make([]byte, KeySize)
	rand.Read(key)
	return key
}

// keyName returns a key's name, which is a hash that does not reveal the key.
func keyName(key []byte) string {
	sum := sha256.Sum256(append([]byte("messagehub key name\x00"), key...))
	return hex.EncodeToString(sum[:6])
}

// sealedPrefix is the start of each encrypted secret, and identifies its format.
const sealedPrefix = "a1"

// Seal encrypts a subscription's secret. Open refuses the result for a different subscription.
func (k *Keyring) Seal(id domain.SubscriptionID, owner domain.ActorID, secret string) string {
	return k.SealFor(sealedFor(id, owner), secret)
}

// SealFor encrypts a secret for a purpose. OpenFor refuses the result for a different purpose.
func (k *Keyring) SealFor(purpose, secret string) string {
	sealed := k.keys[k.first].Seal(nil, nil, []byte(secret), []byte(purpose)) //nolint:gosec // nil: it makes a random nonce
	return strings.Join([]string{sealedPrefix, k.first, base64.RawURLEncoding.EncodeToString(sealed)}, ".")
}

// Open decrypts a subscription's secret. It fails with Unavailable if the Keyring does not contain
// the key that sealed names, and with Damaged if sealed was not encrypted with this key for the
// subscription.
func (k *Keyring) Open(id domain.SubscriptionID, owner domain.ActorID, sealed string) (string, error) {
	secret, err := k.OpenFor(sealedFor(id, owner), sealed)
	if err != nil {
		err = domain.Errorf(domain.KindOf(err), "subscription %s: %w", id, err)
	}
	return secret, err
}

// OpenFor decrypts a secret that was encrypted for a purpose. It fails with the errors of Open.
func (k *Keyring) OpenFor(purpose, sealed string) (string, error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != sealedPrefix {
		return "", domain.Errorf(domain.Damaged, "the secret is not sealed in a known form")
	}
	key, ok := k.keys[parts[1]]
	if !ok {
		return "", domain.Errorf(domain.Unavailable, "the secret was sealed by key %s, which this node does not have", domain.Shorten(parts[1]))
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err == nil {
		text, err = key.Open(nil, nil, text, []byte(purpose))
	}
	if err != nil {
		return "", domain.Errorf(domain.Damaged, "the secret cannot be opened")
	}
	return string(text), nil
}

// sealedFor returns the purpose with which a subscription's secret is encrypted. No other purpose
// has this form.
func sealedFor(id domain.SubscriptionID, owner domain.ActorID) string {
	return id.String() + "|" + owner.String()
}

// String returns ***.
func (k *Keyring) String() string { return "***" }

// GoString returns ***.
func (k *Keyring) GoString() string { return "***" }

// LogValue returns ***.
func (k *Keyring) LogValue() slog.Value { return slog.StringValue("***") }
