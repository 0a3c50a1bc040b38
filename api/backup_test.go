package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/messagehub/messagehub/api"
	"github.com/messagehub/messagehub/domain/hub"
)

const backupPath = "/v1/admin/backup"

func backingUp(write func(context.Context, io.Writer) error) func(*api.Options, *hub.Options) {
	return func(o *api.Options, _ *hub.Options) { o.Backup = write }
}

func TestBackup_ReturnsTheArchive(t *testing.T) {
	f := serve(t, local, backingUp(func(_ context.Context, w io.Writer) error {
		_, err := io.WriteString(w, "archive")
		return err
	}))
	a := f.do("GET", backupPath, "").wants(200)
	require.Equal(t, "archive", a.body)
	require.Equal(t, "application/zstd", a.header.Get("Content-Type"))
	f.do("GET", backupPath, "", "Authorization", "").problem(401, "missing-token")
	f.do("POST", backupPath, "").problem(405, "method-not-allowed")
}

func TestBackup_IsRefusedWithTheReasonIfUnsupported(t *testing.T) {
	serve(t, local).do("GET", backupPath, "").problem(404, "no-such-route")
	f := serve(t, local, func(o *api.Options, _ *hub.Options) { o.NoBackup = "its data is on Azure" })
	require.Contains(t, f.do("GET", backupPath, "").problem(404, "no-such-route").Detail, "its data is on Azure")
}

func TestBackup_ReturnsAProblemOrIsAbortedIfItFails(t *testing.T) {
	begins := false
	f := serve(t, local, backingUp(func(_ context.Context, w io.Writer) error {
		if begins {
			_, _ = io.WriteString(w, "half")
		}
		return errors.New("no luck with secret")
	}))
	f.do("GET", backupPath, "").problem(500, "internal")
	begins = true
	req := f.newRequest("GET", backupPath, http.NoBody)
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, resp.Body.Close())
	}
	require.Error(t, err, "the client knows that it is not whole")
	f.logs.wait(t, "no luck with secret")
}

func TestBackup_IsMadeOneAtATime(t *testing.T) {
	begun, ended := make(chan struct{}, 1), make(chan error, 1)
	f := serve(t, local, backingUp(func(ctx context.Context, _ io.Writer) error {
		begun <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	}))
	ctx, leave := context.WithCancel(t.Context())
	over := make(chan error, 1)
	request := func(ctx context.Context) {
		resp, err := http.DefaultTransport.RoundTrip(f.newRequest("GET", backupPath, http.NoBody).WithContext(ctx))
		if err == nil {
			err = errors.Join(errors.New(resp.Status), resp.Body.Close())
		}
		over <- err
	}
	go request(ctx)
	<-begun
	require.Contains(t, f.do("GET", backupPath, "").problem(429, "busy").Detail, "one can run at a time")
	leave()
	require.ErrorIs(t, <-ended, context.Canceled, "it ends with its client")
	<-over

	go request(t.Context())
	<-begun
	f.server.SetDraining()
	require.Error(t, <-ended, "it ends when the server drains")
	require.ErrorContains(t, <-over, "503")
	f.do("GET", backupPath, "").problem(503, "not-ready")
}
