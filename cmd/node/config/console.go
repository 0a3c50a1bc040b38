package config

// MinSessionKey is the minimum length of a session secret, in characters.
// Cookies are encrypted with a key derived from the secret; a visitor could
// find out a shorter secret by guessing.
const MinSessionKey = 26

func (c *Config) validateConsole(fault faultFunc) {
	if c.Console.ClientID == "" && c.Console.ClientSecret != "" {
		fault("console.client-secret", "there is no console.client-id that it is of; add that, or remove this")
	}
	if c.Console.ClientID != "" && !c.OIDC.IsOn() {
		fault("console.client-id", "there is no oidc.issuer at which operators could sign in; add that, or remove this")
	}
	if n := len(c.Console.SessionKey); n > 0 && n < MinSessionKey {
		fault("console.session-key", "want %d characters or more, such as openssl rand -hex 32 prints", MinSessionKey)
	}
}
