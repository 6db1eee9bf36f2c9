_%[1]s_words() {
  words=""
  case "$1" in
%[2]s  esac
}
_%[1]s() {
  local current="${COMP_WORDS[COMP_CWORD]}" last="" path="" flag="" prefix="" words="" word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word="${COMP_WORDS[i]}"
    if [ "$word" = "=" ]; then
      flag="$last"
      continue
    elif [ -n "$flag" ]; then
      flag=""
      continue
    fi
    case "$word" in
      --*=*) ;;
      -*)
        last="$word"
        _%[1]s_words "$path ="
        case " $words " in *" $word "*) flag="$word" ;; esac ;;
      *)
        _%[1]s_words "$path "
        case " $words " in *" $word "*) path="${path:+$path }$word" ;; esac ;;
    esac
  done
  case "$current" in
    =) flag="$last" current="" ;;
    --*=*) flag="${current%%%%=*}" prefix="$flag=" current="${current#*=}" ;;
  esac
  if [ -n "$flag" ]; then
    _%[1]s_words "$path $flag"
  else
    case "$current" in
      -*) _%[1]s_words "$path -" ;;
      *) _%[1]s_words "$path " ;;
    esac
  fi
  COMPREPLY=($(compgen -P "$prefix" -W "$words" -- "$current"))
}
complete -o default -F _%[1]s %[1]s
