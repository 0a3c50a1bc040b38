package main

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/cmd/node/config"
)

// runWith runs a command in this process with this environment.
func runWith(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	status := run(t.Context(), &process{
		args: append([]string{"messagehub"}, args...), environ: environ, in: strings.NewReader(""), out: &out, err: &errs,
	})
	return result{status, out.String(), errs.String()}
}

// operatorInputs returns the inputs with which a command that has these flags
// loads its configuration.
func operatorInputs(t *testing.T, args ...string) config.Inputs {
	t.Helper()
	flags := pflag.NewFlagSet("queue", pflag.ContinueOnError)
	dataFlag(flags)
	require.NoError(t, flags.Parse(args))
	return config.Inputs{Flags: flags}
}

func TestOperatorCommands_FindTheTokenOfTheHub(t *testing.T) {
	for name, args := range map[string][]string{"a hub with a folder": nil, "a hub in memory": {"--in-memory"}} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(t.TempDir(), "data")
			h := spawnHubIn(t, []string{"MESSAGEHUB_DATA=" + data}, args...)
			require.NoError(t, h.waitReady())
			url := h.url(t)
			file := filepath.Join(data, "admin.token")
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			token := strings.TrimSpace(string(text))
			h.awaitGreeting(t, regexp.MustCompile("The token of its operators is in "+regexp.QuoteMeta(file)+"\\.\n"))

			for _, environ := range [][]string{{"MESSAGEHUB_DATA=" + data}, {tokenVariable + "=" + token}} {
				require.Equal(t, exitNoData, runWith(t, environ, "queue", "show", "--url", url, actorA).status)
				require.Equal(t, 0, runWith(t, environ, "check", "--url", url).status)
			}
			require.Equal(t, exitNoData, runWith(t, nil, "queue", "show", "--url", url, "--data", data, actorA).status)
			require.Equal(t, 0, runWith(t, nil, "check", "--url", url, "--data", data).status)

			t.Chdir(t.TempDir()) // a new folder, in which the default data folder does not exist
			got := runWith(t, nil, "queue", "show", "--url", url, actorA)
			require.Equal(t, 1, got.status)
			require.Contains(t, got.err, "The operator's token is missing or wrong (401)")
			require.Contains(t, got.err, "messagehub: this command sent no token to "+url+"; set MESSAGEHUB_ADMIN_TOKEN to the token of the hub's operators, "+
				"or name the data folder of the hub with --data, or give a token of the issuer with --token-file\n")
			require.Contains(t, runWith(t, []string{tokenVariable + "=another-token-than-that"}, "queue", "show", "--url", url, "--data", data, actorA).err,
				"messagehub: this command sent the token of MESSAGEHUB_ADMIN_TOKEN to "+url+"; the variable takes precedence over --data: unset it, ")

			require.NoError(t, os.Chmod(file, 0o644))
			got = runWith(t, nil, "queue", "show", "--url", url, "--data", data, actorA)
			require.Equal(t, 1, got.status)
			require.Contains(t, got.err, "its mode 0644 lets others read it")
			h.kill()
			require.NotContains(t, h.printed()+h.stderrText(), token, "only the path of the file is printed")
		})
	}
}

func TestOperatorCommands_SendTheTokenOfTheUsualFolderToThisMachineOnly(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("messagehub-data", 0o700))
	require.NoError(t, os.WriteFile("messagehub-data/admin.token", []byte(operatorToken+"\n"), 0o600))
	for base, want := range map[string]string{"http://127.0.0.1:8080": operatorToken, "https://hub.example": ""} {
		p := &process{err: new(strings.Builder)}
		c, err := p.newOperator(operatorInputs(t), base)
		require.NoError(t, err)
		require.Equal(t, want, c.Token, base)
		c, err = p.newOperator(operatorInputs(t, "--data", "messagehub-data"), base)
		require.NoError(t, err)
		require.Equal(t, operatorToken, c.Token, "a named folder says which hub is meant")
	}
}

func TestOperatorCommands_WarnBeforeTheTokenCanBeRead(t *testing.T) {
	for base, warns := range map[string]bool{
		"http://hub.example:8080": true, "http://192.0.2.1": true, "https://hub.example": false,
		"http://127.0.0.1:8080": false, "http://localhost:8080": false, "http://[::1]:8080": false,
	} {
		var errs strings.Builder
		p := &process{environ: []string{tokenVariable + "=" + operatorToken}, err: &errs}
		_, err := p.newOperator(operatorInputs(t), base)
		require.NoError(t, err)
		require.Equal(t, warns, strings.Contains(errs.String(), "warning: the operator's token is sent to "+base+" over plain HTTP"), base)
		require.NotContains(t, errs.String(), operatorToken)
		errs.Reset()
		_, err = (&process{err: &errs}).newOperator(operatorInputs(t, "--data", t.TempDir()), base)
		require.NoError(t, err)
		require.Empty(t, errs.String(), "there is no token to send")
	}
}

func TestOperatorCommands_DoNotFollowARedirect(t *testing.T) {
	asked := 0
	url := memoryHub(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		})
	})
	require.Equal(t, 1, messagehub(t, "", "queue", "show", "--url", url, actorA).status)
	require.Equal(t, 1, asked)
}
