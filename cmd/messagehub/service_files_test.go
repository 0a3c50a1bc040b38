package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

var settingInFile = regexp.MustCompile(`(?m)^#?(MESSAGEHUB_[A-Z_]+)=(.*)$|^Environment=(MESSAGEHUB_[A-Z_]+)=(.*)$`)

// A hub does not start if it finds an unknown variable, so the service's files
// must contain none.
func TestServiceFiles_NameSettingsThatAHubKnows(t *testing.T) {
	var environ []string
	for _, file := range []string{"messagehub.env", "messagehub.service"} {
		text, err := os.ReadFile("../../deploy/" + file)
		require.NoError(t, err)
		for _, found := range settingInFile.FindAllStringSubmatch(string(text), -1) {
			environ = append(environ, found[1]+found[3]+"="+found[2]+found[4])
		}
	}
	require.Greater(t, len(environ), 8)
	_, err := config.Load(config.Inputs{Environ: append(environ, "MESSAGEHUB_TLS_KEY=/hub.key", "AZURE_TOKEN_CREDENTIALS=ManagedIdentityCredential")})
	if err != nil {
		require.NotContains(t, err.Error(), "no such key")
	}
	require.NoError(t, err, "the settings of the comments are valid together")
}
