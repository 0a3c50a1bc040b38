// Package certificate creates the self-signed certificate with which an emulator serves HTTPS. The
// certificate is stored in a folder, so that clients must be configured only once to trust it.
package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/messagehub/messagehub/cosmos/embedded/datafolder"
)

const (
	// FileName is the name of the file with the certificate, which clients must trust.
	FileName = "emulator.crt"
	// KeyName is the name of the file with the private key.
	KeyName = "emulator.key"

	lifetime = 10 * 365 * 24 * time.Hour
)

// A Certificate is a TLS certificate with its private key.
type Certificate struct {
	pem  []byte
	pair tls.Certificate
}

// Config returns the TLS configuration for a server.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{c.pair}, MinVersion: tls.VersionTLS12}
}

// Write writes the certificate without its private key to a file.
func (c *Certificate) Write(file string) error {
	return os.WriteFile(file, c.pem, 0o644) //nolint:gosec // the certificate is public
}

// New creates a certificate that is valid for hosts, which are names or addresses.
func New(hosts ...string) (*Certificate, error) {
	c, _, err := createCertificate(hosts)
	return c, err
}

// Load reads the certificate in dir. If there is no valid certificate for these hosts, Load creates one.
func Load(dir string, hosts ...string) (*Certificate, error) {
	file, key := filepath.Join(dir, FileName), filepath.Join(dir, KeyName)
	if pair, err := tls.LoadX509KeyPair(file, key); err == nil && isValidFor(pair.Leaf, hosts) {
		return &Certificate{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Leaf.Raw}), pair}, nil
	}
	cert, private, err := createCertificate(hosts)
	if err != nil {
		return nil, err
	}
	if err := datafolder.Make(dir); err != nil {
		return nil, err
	}
	if err := os.WriteFile(key, private, datafolder.PrivateFile); err != nil {
		return nil, err
	}
	return cert, cert.Write(file)
}

func isValidFor(leaf *x509.Certificate, hosts []string) bool {
	return leaf != nil && time.Now().Before(leaf.NotAfter) &&
		!slices.ContainsFunc(hosts, func(host string) bool { return leaf.VerifyHostname(host) != nil })
}

func createCertificate(hosts []string) (cert *Certificate, private []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "Cosmos DB emulator of MessageHub"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true, // some clients trust only a CA certificate as a root
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, nil, fmt.Errorf("make a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	private = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	pair, err := tls.X509KeyPair(text, private)
	return &Certificate{text, pair}, private, err
}
