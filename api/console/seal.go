package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"time"
)

// A sealer encrypts and authenticates texts with AES-256-GCM. Clients store these texts, but can
// neither read nor change them.
type sealer struct {
	aead   cipher.AEAD
	clock  func() time.Time
	random io.Reader
}

// newSealer derives the key from a secret. If the secret is empty, it generates a random key.
func newSealer(secret string, clock func() time.Time, random io.Reader) *sealer {
	raw := []byte(secret)
	if secret == "" {
		raw = randomBytes(random, 32)
	}
	key, err := hkdf.Key(sha256.New, raw, nil, "messagehub console, format 1", 32)
	if err != nil {
		panic(err) // a length of 32 bytes is valid
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // a key of 32 bytes is valid
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // the block size of AES is valid
	}
	return &sealer{aead, clock, random}
}

// randomBytes returns n random bytes. It panics if random fails, as crypto/rand does.
func randomBytes(random io.Reader, n int) []byte {
	b := make([]byte, n)
	if _, err := io.ReadFull(random, b); err != nil {
		panic(err)
	}
	return b
}

// A sealedContent is the plaintext of an encrypted text.
type sealedContent struct {
	Expires int64           `json:"expires"` // expiry in seconds since 1970
	Content json.RawMessage `json:"content"`
}

// seal encrypts content into a text that open accepts, for the same purpose, until expires.
func (s *sealer) seal(purpose string, content any, expires time.Time) string {
	inner, err := json.Marshal(content)
	if err != nil {
		panic(err) // contents are structs of texts and numbers, which can always be encoded
	}
	plain, err := json.Marshal(sealedContent{expires.Unix(), inner})
	if err != nil {
		panic(err) // content is valid JSON, so encoding never fails
	}
	nonce := randomBytes(s.random, s.aead.NonceSize())
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nonce, nonce, plain, []byte(purpose)))
}

// open decrypts a text into content, and returns the expiry. It returns false if the text has
// expired or was not encrypted with the same key for the same purpose.
func (s *sealer) open(purpose, text string, content any) (expires time.Time, isValid bool) {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(raw) < s.aead.NonceSize() {
		return time.Time{}, false
	}
	nonce, rest := raw[:s.aead.NonceSize()], raw[s.aead.NonceSize():]
	plain, err := s.aead.Open(nil, nonce, rest, []byte(purpose))
	if err != nil {
		return time.Time{}, false
	}
	var envelope sealedContent
	if json.Unmarshal(plain, &envelope) != nil || json.Unmarshal(envelope.Content, content) != nil {
		return time.Time{}, false
	}
	expires = time.Unix(envelope.Expires, 0)
	return expires, s.clock().Before(expires)
}
