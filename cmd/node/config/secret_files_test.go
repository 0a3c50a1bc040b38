package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

func TestSecret_IsReadFromItsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("a-canary-of-operators\n"), 0o600))
	in := config.Inputs{Environ: []string{"MESSAGEHUB_ADMIN_TOKEN_FILE=" + file}}
	cfg, err := config.Load(in)
	require.NoError(t, err)
	require.Equal(t, "a-canary-of-operators", cfg.Admin.Token.Reveal())
	require.Contains(t, cfg.String(), "admin.token = [redacted] (the file of admin.token-file)")
	require.Empty(t, cfg.Warnings())

	require.NoError(t, os.Chmod(file, 0o644))
	cfg, err = config.Load(in)
	require.NoError(t, err)
	require.Len(t, cfg.Warnings(), 1)
	require.Contains(t, cfg.Warnings()[0], "lets other users read")

	in.Environ = append(in.Environ, "MESSAGEHUB_ADMIN_TOKEN=another-canary-of-operators")
	_, err = config.Load(in)
	require.EqualError(t, err, "admin.token-file (MESSAGEHUB_ADMIN_TOKEN_FILE): admin.token is set too (MESSAGEHUB_ADMIN_TOKEN); remove one of the two")

	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_COSMOS_KEY_FILE=" + file}})
	require.ErrorContains(t, err, "cosmos.key-file: want a cosmos.key alone in "+file)
	_, err = config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_BLOB_KEY_FILE=" + file + "x"}})
	require.ErrorContains(t, err, "blob.key-file: open ")
}

func TestActors_AreReadWithTheirPlaces(t *testing.T) {
	const hash = "9F:86:D0:81:88:4C:7D:65:9A:2F:EA:A0:C5:5A:D0:15:A3:BF:4F:1B:2B:0B:82:2C:D1:5D:6C:15:B0:F0:0A:08"
	actors, err := config.ReadActors("hub.yaml", []byte("actors:\n- {client: c, tenant: t, issuer: i, actor: a, groups: [timeseries]}\n- {certificate-sha256: '"+hash+"', certificate-name: n, actor: b}\n"))
	require.NoError(t, err)
	require.Len(t, actors, 2)
	require.Equal(t, "c", actors[0].Client)
	require.Len(t, actors[0].Groups, 1)
	require.Equal(t, "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", actors[1].CertificateSHA256)
	for text, want := range map[string]string{
		"x":                                      "want a list such as",
		"[x]":                                    "want an entry such as",
		"[{actor: a}]":                           "it would be every client",
		"[{client: c}]":                          "actor: ",
		"[{client: c, actor: Jørgen}]":           "actor: ",
		"[{client: c, actor: a, rol: x}]":        "rol: no such key",
		"[{client: c, actor: a, groups: []}]":    "groups: want a list of names",
		"[{client: c, actor: a, groups: [' ']}]": "groups: ",
		"[{certificate-sha256: ab, actor: a}]":   "certificate-sha256: want 32 bytes",
		"[{certificate-name: n, tenant: t, actor: a}]": "it has no client",
	} {
		_, err := config.ReadActors("hub.yaml", []byte("actors: "+text))
		require.ErrorContains(t, err, want, text)
	}
}

func TestOIDC_RefusesSettingsThatProtectNothing(t *testing.T) {
	issuer := "MESSAGEHUB_OIDC_ISSUER=https://issuer.example"
	for name, tc := range map[string]struct {
		environ []string
		want    string
	}{
		"no audience":             {[]string{issuer}, "tokens for other services would count here"},
		"an issuer over http":     {[]string{"MESSAGEHUB_OIDC_ISSUER=http://issuer.example", "MESSAGEHUB_OIDC_AUDIENCE=a"}, "can be replaced on the way"},
		"an issuer twice":         {[]string{"MESSAGEHUB_OIDC_ISSUER=https://a https://a", "MESSAGEHUB_OIDC_AUDIENCE=a"}, "stands there twice"},
		"a tenant without one":    {[]string{"MESSAGEHUB_OIDC_TENANTS=a"}, "there is no oidc.issuer to use it with"},
		"an actor of each issuer": {[]string{"MESSAGEHUB_OIDC_ISSUER=https://a.example https://b.example", "MESSAGEHUB_OIDC_AUDIENCE=a", "MESSAGEHUB_ACTORS=[{client: c, actor: a}]"}, "add the issuer of this one"},
		"an actor of a stranger":  {[]string{"MESSAGEHUB_OIDC_ISSUER=https://a.example https://b.example", "MESSAGEHUB_OIDC_AUDIENCE=a", "MESSAGEHUB_ACTORS=[{client: c, issuer: 'https://c.example', actor: a}]"}, "is not in oidc.issuer"},
		"actors without one":      {[]string{"MESSAGEHUB_ACTORS=[{client: c, actor: a}]"}, "there is no oidc.issuer to use it with"},
		"a listener in the clear": {
			[]string{issuer, "MESSAGEHUB_OIDC_AUDIENCE=a", "MESSAGEHUB_LISTEN=0.0.0.0:8080"},
			"tokens that are sent by plain HTTP can be read on the way",
		},
	} {
		_, err := config.Load(config.Inputs{Environ: tc.environ})
		require.ErrorContains(t, err, tc.want, name)
	}
	cfg, err := config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_OIDC_ISSUER=https://a, https://b/", "MESSAGEHUB_OIDC_AUDIENCE=x y"}})
	require.NoError(t, err)
	require.Equal(t, []string{"https://a", "https://b/"}, cfg.OIDC.Issuers)
	require.Equal(t, []string{"x", "y"}, cfg.OIDC.Audiences)
}

func TestAdminTokens_AreNamesWithHashes(t *testing.T) {
	const hash = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	cfg, err := config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_ADMIN_TOKENS=[{name: kim, sha256: " + hash + "}]"}})
	require.NoError(t, err)
	require.Equal(t, "kim", cfg.Admin.Tokens[0].Name)
	for text, want := range map[string]string{
		"x": "want a list such as", "[x]": "want an entry such as",
		"[{name: 'k m', sha256: " + hash + "}]":                              "name: want 1 to 64 characters",
		"[{name: k, sha256: ab}]":                                            "sha256: want 64 hexadecimal digits",
		"[{name: k, sha256: " + hash + "}, {name: k, sha256: " + hash + "}]": "k stands in the list twice",
	} {
		_, err := config.Load(config.Inputs{Environ: []string{"MESSAGEHUB_ADMIN_TOKENS=" + text}})
		require.ErrorContains(t, err, want, text)
	}
}
