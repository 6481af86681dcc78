// The widget's own words, in the language of the visitor's browser.
export type Words = {
  back: (time: string) => string; away: string; person: string; atOnce: string; soon: string; email: string; emailIssue: string; close: string; messages: string; writing: string; asked: string;
  leave: string; answerTo: string; write: string; send: string; tooLong: (n: number) => string; askPerson: string; you: string; bot: string; aPerson: string; again: string;
  unreachable: string; gone: string; connecting: string; tooMuch: (seconds: number) => string; notSent: string; moment: string; alone: string;
  attach: string; remove: (name: string) => string; limits: (n: number, mb: number) => string; wrongType: (name: string) => string; cancel: string; notKept: string;
};

const languages: Record<string, Words> = {
  en: {
    back: (t) => `People are back ${t}`, away: "People are away", person: "A person answers you here", atOnce: "Answers at once", soon: "We answer as soon as we can", email: "Your email address",
    emailIssue: "Please enter an email address such as ada@example.com.", close: "Close", messages: "Messages", writing: "An answer is being written", asked: "We have asked a person. The answer appears here.", leave: "Leave my address",
    answerTo: "We answer here, or to", write: "Write a message", send: "Send", tooLong: (n) => `${n} characters too many`, askPerson: "A person, please", you: "You", bot: "Answer", aPerson: "A person", again: "Send again",
    unreachable: "The server cannot be reached.", gone: "This chat is not available.", connecting: "Connecting again…", tooMuch: (s) => `That was too much at once. Try again ${s ? `in ${s} s` : "later"}.`, notSent: "Not sent: the server cannot be reached.",
    moment: "One moment…", alone: "This chat belongs to a website, and opens there.",
    attach: "Attach files", remove: (f) => `Remove ${f}`, limits: (n, mb) => `Up to ${n} ${n === 1 ? "file" : "files"}, ${mb} MB each`, wrongType: (f) => `Files like ${f} cannot be sent here.`, cancel: "Cancel", notKept: "no longer available",
  },
  de: {
    back: (t) => `Wieder für Sie da: ${t}`, away: "Gerade ist niemand da", person: "Hier antwortet Ihnen ein Mensch", atOnce: "Antwortet sofort", soon: "Wir antworten so bald wie möglich", email: "Ihre E-Mail-Adresse",
    emailIssue: "Bitte geben Sie eine E-Mail-Adresse wie ada@example.com ein.", close: "Schließen", messages: "Nachrichten", writing: "Eine Antwort wird geschrieben", asked: "Wir haben jemanden gefragt. Die Antwort erscheint hier.", leave: "Adresse hinterlassen",
    answerTo: "Wir antworten hier oder an", write: "Nachricht schreiben", send: "Senden", tooLong: (n) => `${n} Zeichen zu viel`, askPerson: "Bitte ein Mensch", you: "Sie", bot: "Antwort", aPerson: "Ein Mensch", again: "Noch einmal senden",
    unreachable: "Der Server ist nicht erreichbar.", gone: "Dieser Chat ist nicht verfügbar.", connecting: "Verbindung wird wiederhergestellt…", tooMuch: (s) => `Das war zu viel auf einmal. Versuchen Sie es ${s ? `in ${s} s` : "später"} noch einmal.`, notSent: "Nicht gesendet: Der Server ist nicht erreichbar.",
    moment: "Einen Moment…", alone: "Dieser Chat gehört zu einer Website und öffnet sich dort.",
    attach: "Dateien anhängen", remove: (f) => `${f} entfernen`, limits: (n, mb) => `Bis zu ${n} ${n === 1 ? "Datei" : "Dateien"}, je ${mb} MB`, wrongType: (f) => `Dateien wie ${f} können hier nicht gesendet werden.`, cancel: "Abbrechen", notKept: "nicht mehr verfügbar",
  },
  fr: {
    back: (t) => `De retour ${t}`, away: "Nous sommes absents pour le moment", person: "Un conseiller vous répond ici", atOnce: "Répond immédiatement", soon: "Nous répondons dès que possible", email: "Votre adresse e-mail",
    emailIssue: "Veuillez saisir une adresse e-mail, par exemple ada@example.com.", close: "Fermer", messages: "Messages", writing: "Une réponse est en cours de rédaction", asked: "Nous avons prévenu un conseiller. Sa réponse s’affichera ici.", leave: "Laisser mon adresse e-mail",
    answerTo: "Nous vous répondrons ici ou à l’adresse", write: "Écrire un message", send: "Envoyer", tooLong: (n) => `${n} caractères en trop`, askPerson: "Parler à un conseiller", you: "Vous", bot: "Réponse", aPerson: "Conseiller", again: "Renvoyer",
    unreachable: "Le serveur est injoignable.", gone: "Ce chat n’est pas disponible.", connecting: "Reconnexion…", tooMuch: (s) => `Trop de messages à la fois. Réessayez ${s ? `dans ${s} s` : "plus tard"}.`, notSent: "Non envoyé : le serveur est injoignable.",
    moment: "Un instant…", alone: "Ce chat fait partie d’un site web et s’ouvre sur ce site.",
    attach: "Joindre des fichiers", remove: (f) => `Retirer ${f}`, limits: (n, mb) => `Jusqu’à ${n} ${n === 1 ? "fichier" : "fichiers"} de ${mb} Mo`, wrongType: (f) => `Les fichiers comme ${f} ne peuvent pas être envoyés ici.`, cancel: "Annuler", notKept: "n’est plus disponible",
  },
  es: {
    back: (t) => `Volvemos ${t}`, away: "Ahora mismo no hay nadie disponible", person: "Aquí le atiende una persona", atOnce: "Responde al momento", soon: "Respondemos lo antes posible", email: "Su correo electrónico",
    emailIssue: "Introduzca una dirección de correo electrónico, por ejemplo ada@example.com.", close: "Cerrar", messages: "Mensajes", writing: "Se está escribiendo una respuesta", asked: "Hemos avisado a una persona del equipo. La respuesta aparecerá aquí.", leave: "Dejar mi correo",
    answerTo: "Le responderemos aquí o en", write: "Escriba un mensaje", send: "Enviar", tooLong: (n) => `Sobran ${n} caracteres`, askPerson: "Hablar con una persona", you: "Usted", bot: "Respuesta", aPerson: "Una persona", again: "Enviar de nuevo",
    unreachable: "No se puede conectar con el servidor.", gone: "Este chat no está disponible.", connecting: "Reconectando…", tooMuch: (s) => `Demasiados mensajes a la vez. Inténtelo de nuevo ${s ? `dentro de ${s} s` : "más tarde"}.`, notSent: "No enviado: no se puede conectar con el servidor.",
    moment: "Un momento…", alone: "Este chat forma parte de un sitio web y se abre allí.",
    attach: "Adjuntar archivos", remove: (f) => `Quitar ${f}`, limits: (n, mb) => `Hasta ${n} ${n === 1 ? "archivo" : "archivos"} de ${mb} MB`, wrongType: (f) => `Aquí no se pueden enviar archivos como ${f}.`, cancel: "Cancelar", notKept: "ya no está disponible",
  },
  it: {
    back: (t) => `Torniamo ${t}`, away: "Al momento non è disponibile nessuno", person: "Qui le risponde un operatore", atOnce: "Risponde subito", soon: "Rispondiamo il prima possibile", email: "Il suo indirizzo e-mail",
    emailIssue: "Inserisca un indirizzo e-mail, ad esempio ada@example.com.", close: "Chiudi", messages: "Messaggi", writing: "È in arrivo una risposta", asked: "Abbiamo avvisato un operatore. La risposta apparirà qui.", leave: "Lascia il mio indirizzo e-mail",
    answerTo: "Le risponderemo qui o all’indirizzo", write: "Scriva un messaggio", send: "Invia", tooLong: (n) => `${n} caratteri di troppo`, askPerson: "Parla con un operatore", you: "Lei", bot: "Risposta", aPerson: "Operatore", again: "Invia di nuovo",
    unreachable: "Il server non è raggiungibile.", gone: "Questa chat non è disponibile.", connecting: "Riconnessione in corso…", tooMuch: (s) => `Troppi messaggi in una volta. Riprovi ${s ? `tra ${s} s` : "più tardi"}.`, notSent: "Non inviato: il server non è raggiungibile.",
    moment: "Un momento…", alone: "Questa chat fa parte di un sito web e si apre da lì.",
    attach: "Allega file", remove: (f) => `Rimuovi ${f}`, limits: (n, mb) => `Fino a ${n} file di ${mb} MB`, wrongType: (f) => `Qui non si possono inviare file come ${f}.`, cancel: "Annulla", notKept: "non più disponibile",
  },
  pt: {
    back: (t) => `Voltamos ${t}`, away: "Neste momento não há ninguém disponível", person: "Um atendente responde aqui", atOnce: "Responde na hora", soon: "Respondemos assim que possível", email: "O seu e-mail",
    emailIssue: "Indique um endereço de e-mail, por exemplo ada@example.com.", close: "Fechar", messages: "Mensagens", writing: "A resposta está a caminho", asked: "Um atendente foi avisado. A resposta aparece aqui.", leave: "Deixar o meu e-mail",
    answerTo: "Respondemos aqui ou pelo e-mail", write: "Escreva uma mensagem", send: "Enviar", tooLong: (n) => `${n} caracteres a mais`, askPerson: "Falar com um atendente", you: "Você", bot: "Resposta", aPerson: "Atendente", again: "Enviar novamente",
    unreachable: "Sem conexão com o servidor.", gone: "Este chat não está disponível.", connecting: "Restabelecendo a conexão…", tooMuch: (s) => `Muitas mensagens de uma só vez. Tente novamente ${s ? `em ${s} s` : "mais tarde"}.`, notSent: "Não enviado: sem conexão com o servidor.",
    moment: "Um momento…", alone: "Este chat faz parte de um site e abre nele.",
    attach: "Anexar ficheiros", remove: (f) => `Remover ${f}`, limits: (n, mb) => `Até ${n} ${n === 1 ? "ficheiro" : "ficheiros"} de ${mb} MB`, wrongType: (f) => `Não é possível enviar ficheiros como ${f} aqui.`, cancel: "Cancelar", notKept: "já não está disponível",
  },
  nl: {
    back: (t) => `We zijn er weer ${t}`, away: "Er is nu niemand", person: "Een medewerker antwoordt hier", atOnce: "Antwoordt meteen", soon: "We antwoorden zo snel mogelijk", email: "Uw e-mailadres",
    emailIssue: "Vul een e-mailadres in, zoals ada@example.com.", close: "Sluiten", messages: "Berichten", writing: "Er wordt een antwoord geschreven", asked: "We hebben een medewerker gevraagd. Het antwoord verschijnt hier.", leave: "Mijn adres achterlaten",
    answerTo: "We antwoorden hier, of naar", write: "Schrijf een bericht", send: "Versturen", tooLong: (n) => `${n} tekens te veel`, askPerson: "Graag een medewerker", you: "U", bot: "Antwoord", aPerson: "Medewerker", again: "Opnieuw versturen",
    unreachable: "De server is niet bereikbaar.", gone: "Deze chat is niet beschikbaar.", connecting: "Opnieuw verbinden…", tooMuch: (s) => `Dat was te veel tegelijk. Probeer het ${s ? `over ${s} s` : "later"} opnieuw.`, notSent: "Niet verstuurd: de server is niet bereikbaar.",
    moment: "Een ogenblik…", alone: "Deze chat hoort bij een website en opent daar.",
    attach: "Bestanden toevoegen", remove: (f) => `${f} verwijderen`, limits: (n, mb) => `Maximaal ${n} ${n === 1 ? "bestand" : "bestanden"} van ${mb} MB`, wrongType: (f) => `Bestanden zoals ${f} kunnen hier niet worden verstuurd.`, cancel: "Annuleren", notKept: "niet meer beschikbaar",
  },
};

/** The language of the words. */
export const language = navigator.languages.map((l) => l.slice(0, 2)).find((l) => Object.hasOwn(languages, l)) ?? "en";
export const words = languages[language];
