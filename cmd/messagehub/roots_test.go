package main

import (
	"crypto/x509"
	_ "embed"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// azureRoot is the certificate DigiCert Global Root G2, the root of Azure's
// certificates.
//
//go:embed testdata/azure-root.pem
var azureRoot []byte

const withoutSystemRoots = "MESSAGEHUB_TEST_WITHOUT_SYSTEM_ROOTS"

// A container image built from scratch contains no root certificates, and TLS
// to Azure needs them.
func TestRoots_AreLinkedIntoTheProgram(t *testing.T) {
	block, _ := pem.Decode(azureRoot)
	root, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	if os.Getenv(withoutSystemRoots) != "" {
		_, err = root.Verify(x509.VerifyOptions{})
		require.NoError(t, err)
		return
	}
	missing := filepath.Join(t.TempDir(), "none")
	cmd := exec.Command(os.Args[0], "-test.run=^TestRoots_AreLinkedIntoTheProgram$", "-test.v")
	cmd.Env = append(cleanEnviron(), withoutSystemRoots+"=yes", "SSL_CERT_FILE="+missing, "SSL_CERT_DIR="+missing)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "PASS")
	_, err = root.Verify(x509.VerifyOptions{Roots: x509.NewCertPool()})
	require.ErrorAs(t, err, new(x509.UnknownAuthorityError), "a missing root is seen")
}
