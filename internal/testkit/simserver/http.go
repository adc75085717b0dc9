package simserver

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Model is the name of the simulated model.
const Model = "sim"

// A Server is a simulated server: an http.Handler.
type Server struct {
	cfg     Config
	engines []*engine
	mux     *http.ServeMux
	next    atomic.Int64 // engine of the next request
	got     atomic.Int64
	dead    atomic.Bool
}

// New is a server for c.
func New(c Config) *Server {
	c = c.filled()
	s := &Server{cfg: c, mux: http.NewServeMux()}
	for i := range c.Engines {
		s.engines = append(s.engines, newEngine(c, i))
	}
	s.mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	s.mux.HandleFunc("GET /version", s.version)
	s.mux.HandleFunc("GET /get_server_info", s.serverInfo)
	s.mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"max_model_len":4096}]}`, Model)
	})
	s.mux.HandleFunc("GET /metrics", s.metrics)
	s.mux.HandleFunc("POST /v1/completions", s.completions)
	return s
}

func (s *Server) version(w http.ResponseWriter, r *http.Request) {
	if s.cfg.SGLang {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(`{"version":"0.32.0"}`))
}

// serverInfo is where SGLang tells its version, among much else.
func (s *Server) serverInfo(w http.ResponseWriter, r *http.Request) {
	if !s.cfg.SGLang {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write([]byte(`{"model_path":"sim","tp_size":1,"version":"0.5.9"}`))
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.dead.Load() {
		panic(http.ErrAbortHandler) // closes the connection
	}
	if s.cfg.Key != "" && r.URL.Path != "/health" && r.Header.Get("Authorization") != "Bearer "+s.cfg.Key {
		http.Error(w, `{"error":{"message":"Unauthorized"}}`, http.StatusUnauthorized)
		return
	}
	s.mux.ServeHTTP(w, r)
}

// body is a request as the API spells it.
type body struct {
	Prompt         json.RawMessage `json:"prompt"`
	MaxTokens      int             `json:"max_tokens"`
	Temperature    float64         `json:"temperature"`
	Seed           int64           `json:"seed"`
	Logprobs       int             `json:"logprobs"`
	PromptLogprobs int             `json:"prompt_logprobs"`
	Salt           string          `json:"cache_salt"`
	ExtraKey       string          `json:"extra_key"`
	Rank           *int            `json:"routed_dp_rank"`
	OldRank        *int            `json:"data_parallel_rank"`
	IDs            bool            `json:"return_token_ids"`
	AsIDs          bool            `json:"return_tokens_as_token_ids"`
	Stream         bool            `json:"stream"`
}

func (b body) prompts() ([]string, error) {
	var one string
	if json.Unmarshal(b.Prompt, &one) == nil {
		return []string{one}, nil
	}
	var many []string
	err := json.Unmarshal(b.Prompt, &many)
	return many, err
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	n := s.got.Add(1)
	switch {
	case int(n) <= s.cfg.Busy:
		code := http.StatusTooManyRequests
		if n%2 == 0 {
			code = http.StatusServiceUnavailable
		}
		http.Error(w, "busy", code)
		return
	case s.cfg.has(Dies) && int(n) > s.cfg.DieAfter:
		s.dead.Store(true)
		panic(http.ErrAbortHandler)
	}
	text, err := io.ReadAll(r.Body) // whole: an unread body hides that the client went
	if err != nil {
		return
	}
	if s.cfg.has(Slow) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Hour):
		}
		return
	}
	var b body
	if err := json.Unmarshal(text, &b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	prompts, err := b.prompts()
	if err != nil || b.Logprobs > 20 {
		http.Error(w, `{"error":{"message":"bad request"}}`, http.StatusBadRequest)
		return
	}
	var reqs []*request
	for _, p := range prompts {
		req := &request{
			prompt: tokens(p), salt: b.Salt + b.ExtraKey, maxTokens: b.MaxTokens, temperature: b.Temperature,
			seed: uint64(b.Seed), wantPrompt: b.PromptLogprobs, out: make(chan token, b.MaxTokens), //nolint:gosec // a seed
		}
		reqs = append(reqs, req)
		s.engineFor(r, b).submit(req)
	}
	if b.Stream {
		s.stream(w, b, reqs)
		return
	}
	s.whole(w, b, reqs)
}

// engineFor is the engine that a request goes to.
func (s *Server) engineFor(r *http.Request, b body) *engine {
	k, err := strconv.Atoi(r.Header.Get("X-data-parallel-rank"))
	for _, rank := range []*int{b.OldRank, b.Rank} {
		if rank != nil && s.cfg.SGLang {
			k, err = *rank, nil
		}
	}
	if err != nil || k < 0 || k >= len(s.engines) || s.cfg.has(DeafToRank) {
		k = int(s.next.Add(1)) % len(s.engines)
	}
	return s.engines[k]
}

func (s *Server) whole(w http.ResponseWriter, b body, reqs []*request) {
	var choices []string
	prompt, completion := 0, 0
	for i, r := range reqs {
		var toks []token
		for t := range r.out {
			toks = append(toks, t)
		}
		prompt, completion = prompt+len(r.prompt), completion+len(toks)
		if s.cfg.has(BadIndex) && len(reqs) > 1 && i == 1 {
			continue
		}
		choices = append(choices, s.choice(b, i, r, toks, true))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"object":"text_completion","model":%q,"choices":[%s],"usage":{"prompt_tokens":%d,"completion_tokens":%d}}`,
		Model, strings.Join(choices, ","), prompt, completion)
}

func (s *Server) stream(w http.ResponseWriter, b body, reqs []*request) {
	w.Header().Set("Content-Type", "text/event-stream")
	flush := func() {
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	prompt, completion := 0, 0
	for i, r := range reqs {
		prompt += len(r.prompt)
		n := 0
		for t := range r.out {
			n++
			_, _ = fmt.Fprintf(w, "data: {\"choices\":[%s]}\n\n", s.choice(b, i, r, []token{t}, n == r.maxTokens))
			flush()
		}
		completion += n
	}
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", prompt, completion)
	flush()
}

// choice spells one choice, or a piece of it.
func (s *Server) choice(b body, index int, r *request, toks []token, last bool) string {
	var text, names, values, tops, ids []string
	for _, t := range toks {
		name := strconv.Quote(spell(t.id, s.cfg.asIDs(b)))
		names = append(names, name)
		text = append(text, " w"+strconv.Itoa(t.id))
		ids = append(ids, strconv.Itoa(t.id))
		v := number(t.logprob)
		if s.cfg.has(NaN) && t.at%3 == 0 {
			v = "NaN"
		}
		values = append(values, v)
		k := b.Logprobs
		if t.short {
			k--
		}
		tops = append(tops, s.topList(t, k, b))
	}
	out := fmt.Sprintf(`{"index":%d,"text":%q`, index, strings.Join(text, ""))
	if b.Logprobs > 0 && !s.cfg.has(NoLogprobs) {
		out += fmt.Sprintf(`,"logprobs":{"tokens":[%s],"token_logprobs":[%s],"top_logprobs":[%s]}`, strings.Join(names, ","), strings.Join(values, ","), strings.Join(tops, ","))
	}
	if b.IDs && !s.cfg.has(NoIDs) {
		if s.cfg.has(WrongIDs) && last {
			ids = ids[:len(ids)-1]
		}
		out += `,"token_ids":[` + strings.Join(ids, ",") + `]`
	}
	if b.PromptLogprobs > 0 && !s.cfg.SGLang {
		entries := []string{"null"}
		for _, c := range r.prompts {
			entries = append(entries, promptEntry(c, b.PromptLogprobs))
		}
		out += `,"prompt_logprobs":[` + strings.Join(entries, ",") + "]"
	}
	if last {
		out += `,"finish_reason":"length"`
	}
	return out + "}"
}

// topList has k entries, and the chosen token where it is not among them.
func (s *Server) topList(t token, k int, b body) string {
	var out []string
	chosen := false
	for i, c := range t.top {
		if i < k || !chosen && c.id == t.id {
			out = append(out, strconv.Quote(spell(c.id, s.cfg.asIDs(b)))+":"+number(c.logprob))
			chosen = chosen || c.id == t.id
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func promptEntry(c []candidate, k int) string {
	var out []string
	for i, x := range c[:k] {
		out = append(out, fmt.Sprintf(`"%d":{"logprob":%s,"rank":%d}`, x.id, number(x.logprob), i+1))
	}
	return "{" + strings.Join(out, ",") + "}"
}

// asIDs reports whether tokens are spelled as their ids.
func (c Config) asIDs(b body) bool { return b.AsIDs && !c.has(NoIDs) && !c.SGLang }

func spell(id int, asID bool) string {
	if asID {
		return "token_id:" + strconv.Itoa(id)
	}
	return " w" + strconv.Itoa(id)
}

// number writes a float32 widened to a double, as Python does.
func number(v float32) string {
	if math.IsNaN(float64(v)) {
		return "NaN"
	}
	return strconv.FormatFloat(float64(v), 'g', -1, 64)
}
