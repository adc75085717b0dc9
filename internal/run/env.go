package run

import (
	"slices"
	"strings"
)

// Getenv is the last value of key in env, or "".
func Getenv(env []string, key string) string {
	for _, kv := range slices.Backward(env) {
		if k, v, ok := strings.Cut(kv, "="); ok && k == key {
			return v
		}
	}
	return ""
}

// Setenv returns env with key set to value, in place of every earlier value.
func Setenv(env []string, key, value string) []string {
	return append(Unsetenv(env, key), key+"="+value)
}

// Unsetenv returns env without keys.
func Unsetenv(env []string, keys ...string) []string {
	out := make([]string, 0, len(env)+1)
	for _, kv := range env {
		k, _, _ := strings.Cut(kv, "=")
		if !slices.Contains(keys, k) {
			out = append(out, kv)
		}
	}
	return out
}

// Pick returns the entries of env whose key is in keys, in the order of keys.
func Pick(env []string, keys ...string) []string {
	var out []string
	for _, k := range keys {
		if v := Getenv(env, k); v != "" {
			out = append(out, k+"="+v)
		}
	}
	return out
}
