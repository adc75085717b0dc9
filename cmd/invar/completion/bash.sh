# bash completion for invar: source <(invar completion bash)
_invar() {
	local IFS=$'\n' cur=${COMP_WORDS[COMP_CWORD]} words
	words=("${COMP_WORDS[@]:0:COMP_CWORD}")
	if [[ $cur == -* ]]; then
		words+=("$cur")
	fi
	mapfile -t COMPREPLY < <(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur")
}
complete -o bashdefault -o default -F _invar invar
