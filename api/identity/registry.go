package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"slices"

	"github.com/messagehub/messagehub/domain"
)

// An Entry grants a client the right to act for an actor. A request matches if it matches every
// field from Issuer to CertificateSHA256 that is not empty. An Entry must have a Client, a
// certificate name or a certificate fingerprint.
type Entry struct {
	Issuer string // issuer of the token
	Client string // claim azp, appid or client_id of the token
	Tenant string // claim tid of the token

	CertificateName   string // DNS name, URI or e-mail address of the client certificate
	CertificateSHA256 string // fingerprint of the client certificate, in lower-case hexadecimal digits

	Actor  domain.ActorID
	Groups []domain.Group // none: all
}

// A Registry maps clients to actors. It is safe for concurrent use.
type Registry struct {
	byClient    map[string][]Entry
	certificate []Entry // entries without a Client, which match certificates
}

// NewRegistry returns a registry with the given entries.
func NewRegistry(entries []Entry) *Registry {
	r := &Registry{byClient: make(map[string][]Entry)}
	for _, e := range entries {
		if e.Client == "" {
			r.certificate = append(r.certificate, e)
			continue
		}
		r.byClient[e.Client] = append(r.byClient[e.Client], e)
	}
	return r
}

// grantsOfToken returns the grants for the client of a token. cert is the client certificate of the
// request, or nil.
func (r *Registry) grantsOfToken(t *verifiedToken, cert *x509.Certificate) (grants []Grant) {
	for _, e := range r.byClient[t.client] {
		if isSame(e.Issuer, t.issuer) && isSame(e.Tenant, t.tenant) && e.matchesCertificate(cert) {
			grants = append(grants, Grant{e.Actor, e.Groups})
		}
	}
	return grants
}

// grantsOfCertificate returns the grants for a request with a client certificate and no token.
func (r *Registry) grantsOfCertificate(cert *x509.Certificate) (grants []Grant) {
	for _, e := range r.certificate {
		if e.matchesCertificate(cert) {
			grants = append(grants, Grant{e.Actor, e.Groups})
		}
	}
	return grants
}

func isSame(want, got string) bool { return want == "" || want == got }

// matchesCertificate reports whether a certificate satisfies the entry. An entry that names no
// certificate accepts any request.
func (e *Entry) matchesCertificate(cert *x509.Certificate) bool {
	switch {
	case e.CertificateName == "" && e.CertificateSHA256 == "":
		return true
	case cert == nil:
		return false
	}
	return (e.CertificateSHA256 == "" || e.CertificateSHA256 == fingerprint(cert)) && (e.CertificateName == "" || hasName(cert, e.CertificateName))
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// thumbprint returns the hash of a certificate in the format of the claim x5t#S256.
func thumbprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func hasName(cert *x509.Certificate, name string) bool {
	if slices.Contains(cert.DNSNames, name) || slices.Contains(cert.EmailAddresses, name) {
		return true
	}
	for _, u := range cert.URIs {
		if u.String() == name {
			return true
		}
	}
	return false
}
