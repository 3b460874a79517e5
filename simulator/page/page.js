// Everything a person reads is set as text, never as HTML: messages come from anywhere.

const STATUS = {
  STOPPED: "parada",
  STARTING: "conectando…",
  SCAN_QR_CODE: "esperando o QR code",
  WORKING: "conectada",
  FAILED: "falhou",
};
const NOTES = {
  STOPPED: "Esta sessão está parada. Inicie-a pela plataforma.",
  STARTING: "Conectando ao WhatsApp…",
  FAILED: "A sessão falhou: o aparelho foi desconectado ou ninguém escaneou o QR code a tempo. Reinicie-a pela plataforma.",
};
const KINDS = {
  image: "Imagem", video: "Vídeo", video_note: "Recado de vídeo", audio: "Áudio", voice: "Áudio de voz", document: "Documento",
  sticker: "Figurinha", location: "Localização", contact: "Contato", poll: "Enquete", empty: "Mensagem vazia", waiting: "Aguardando mensagem",
  view_once: "Visualização única", system: "Aviso do WhatsApp", unsupported: "Tipo não suportado",
};
const TICKS = { "-1": ["!", "não entregue"], 0: ["◷", "enviando"], 1: ["✓", "enviada"], 2: ["✓✓", "entregue"], 3: ["✓✓", "lida"], 4: ["✓✓", "ouvida"] };
const UPLOADS = new Set(["image", "voice", "video", "document", "sticker"]);
const EMOJIS = ["👍", "❤️", "😂", "🛑"];
const EVERY_MS = 1500;

const $ = (id) => document.getElementById(id);
const here = { session: null, chat: null, quote: null, sessions: [], chats: [], messages: [] };
const drawn = new Map();

// -- talking to the simulator --

async function ask(method, path, body) {
  const options = { method, headers: {} };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(`control/${path}`, options);
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error || found.message || `erro ${answer.status}`);
  return found;
}

async function act(deed) {
  try {
    await deed();
    await refresh();
    return true;
  } catch (error) {
    say(`Não deu certo: ${error.message}`);
    return false;
  }
}

let hushing;
function say(text) {
  $("toast").textContent = text;
  $("toast").classList.add("shown");
  clearTimeout(hushing);
  hushing = setTimeout(() => $("toast").classList.remove("shown"), 4000);
}

// -- small helpers --

function make(tag, settings = {}, ...children) {
  const { data, ...rest } = settings;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data || {});
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return element;
}

function button(text, deed, label) {
  const made = make("button", { type: "button", textContent: text });
  if (label) made.setAttribute("aria-label", label);
  made.addEventListener("click", deed);
  return made;
}

function phone(chatId) {
  const [user, server] = chatId.split("@");
  if (server === "lid") return `LID ${user}`;
  if (server === "g.us") return "Grupo";
  if (server !== "c.us") return chatId;
  const found = /^55(\d{2})(\d{4,5})(\d{4})$/.exec(user);
  return found ? `+55 ${found[1]} ${found[2]}-${found[3]}` : `+${user.replace(/^\+/, "")}`;
}

const clock = (at) => new Date(at * 1000).toLocaleTimeString("pt-BR", { hour: "2-digit", minute: "2-digit" });
const isGroup = (chatId) => chatId.endsWith("@g.us");
const digits = (chatId) => chatId.split("@")[0];
const session = () => here.sessions.find((found) => found.name === here.session);

/** Draw only what changed, so that nothing jumps while someone reads or types. */
function unlessSame(name, value, draw) {
  const key = JSON.stringify(value);
  if (drawn.get(name) === key) return;
  drawn.set(name, key);
  draw();
}

const DEPTH = { sessions: 0, chats: 1, conversation: 2 };

/** On a phone the browser's own way back leads where the arrow does. */
function show(view) {
  const before = document.body.dataset.view;
  if (DEPTH[view] > DEPTH[before]) history.pushState({ view }, "");
  else history.replaceState({ view }, "");
  document.body.dataset.view = view;
}

window.addEventListener("popstate", (event) => {
  const view = event.state?.view || "sessions";
  document.body.dataset.view = here.session ? view : "sessions";
});
history.replaceState({ view: "sessions" }, "");

// -- accounts --

function drawSessions() {
  unlessSame("sessions", [here.sessions.map((one) => [one.name, one.status, one.phone]), here.session], () => {
    $("session-list").replaceChildren(...here.sessions.map(sessionRow));
    $("no-sessions").hidden = here.sessions.length > 0;
  });
}

function sessionRow(one) {
  const row = make("button", { type: "button" },
    make("strong", { className: "wide", textContent: one.name }),
    make("span", { className: "preview" },
      make("span", { className: "chip", textContent: STATUS[one.status] || one.status, data: { status: one.status } }),
      one.phone ? ` · ${phone(`${one.phone}@c.us`)}` : ""));
  row.setAttribute("aria-current", String(one.name === here.session));
  row.addEventListener("click", () => chooseSession(one.name));
  return make("li", {}, row);
}

function chooseSession(name) {
  Object.assign(here, { session: name, chat: null, quote: null, chats: [], messages: [] });
  show("chats");
  refresh();
}

function drawSession() {
  const one = session();
  unlessSame("session", one && [one.name, one.status, one.qr, one.phone, one.me], () => {
    const isWorking = one?.status === "WORKING";
    $("chats-title").textContent = one ? one.name : "Conversas";
    $("session-status").textContent = one ? [STATUS[one.status] || one.status, isWorking && phone(`${one.phone}@c.us`)].filter(Boolean).join(" · ") : "";
    $("scan").hidden = !one?.qr;
    if (one?.qr) $("qr").src = `control/sessions/${encodeURIComponent(one.name)}/qr?value=${encodeURIComponent(one.qr.slice(-24))}`;
    $("session-note").hidden = !one || !NOTES[one.status];
    $("session-note").textContent = (one && NOTES[one.status]) || "";
    $("session-tools").hidden = !one || one.status === "STOPPED" || Boolean(one.qr);
  });
}

// -- conversations --

function drawChats() {
  const isQuiet = session()?.status === "WORKING" && here.chats.length === 0;
  $("no-chats").hidden = !isQuiet;
  unlessSame("chats", [here.chats, here.chat], () => $("chat-list").replaceChildren(...here.chats.map(chatRow)));
}

function chatRow(chat) {
  const row = make("button", { type: "button" },
    make("strong", { textContent: chat.name || phone(chat.chat_id) }),
    make("span", { className: "quiet", textContent: clock(chat.last.at) }),
    make("span", { className: "preview", textContent: preview(chat.last) }));
  row.setAttribute("aria-current", String(chat.chat_id === here.chat));
  row.addEventListener("click", () => chooseChat(chat.chat_id));
  return make("li", {}, row);
}

function preview(message) {
  if (message.is_revoked) return "Mensagem apagada";
  return [message.from_me ? "Conta:" : "", KINDS[message.kind] || "", message.text || ""].filter(Boolean).join(" ");
}

function chooseChat(chatId) {
  Object.assign(here, { chat: chatId, messages: [] });
  quote(null);
  show("conversation");
  refresh();
}

function drawConversation() {
  const chat = here.chats.find((one) => one.chat_id === here.chat);
  $("no-conversation").hidden = Boolean(here.chat);
  $("composer").hidden = !here.chat;
  $("mark-read").hidden = !here.messages.some((message) => message.from_me && message.ack >= 0 && message.ack < 3);
  if (!here.chat) {
    $("conversation-title").textContent = "Celular";
    $("conversation-who").textContent = "";
    $("messages").replaceChildren();
    drawn.delete("messages");
    return;
  }
  $("who").hidden = !isGroup(here.chat);
  $("conversation-title").textContent = chat?.name || phone(here.chat);
  $("conversation-who").textContent = isGroup(here.chat) ? "como o grupo aparece para quem está nele" : chat?.name ? phone(here.chat) : "o celular de quem recebe";
  unlessSame("messages", [here.chat, here.messages], () => {
    const list = $("messages");
    const isPinned = pinned !== here.chat || list.scrollHeight - list.scrollTop - list.clientHeight < 80;
    list.replaceChildren(...here.messages.map(messageRow));
    if (here.messages.length) pinned = here.chat;
    if (isPinned) toEnd();
  });
}

/** The newest in sight, and again once its pictures have their height. */
let pinned = null;
function toEnd() {
  const list = $("messages");
  list.scrollTop = list.scrollHeight;
  for (const found of list.querySelectorAll("img, video")) {
    found.addEventListener(found.tagName === "IMG" ? "load" : "loadedmetadata", () => { list.scrollTop = list.scrollHeight; }, { once: true });
  }
}

function messageRow(message) {
  const isTheirs = message.from_me;
  const row = make("li", { className: isTheirs ? "message" : "message mine" });
  if (isGroup(here.chat)) row.append(make("p", { className: "who", textContent: isTheirs ? "A conta" : message.push_name || phone(message.participant || "") }));
  if (message.reply_to) row.append(make("p", { className: "quoted", textContent: message.reply_to.text || "Mensagem citada" }));
  row.append(...(message.is_revoked ? [make("p", { className: "gone", textContent: "Mensagem apagada" })] : body(message)));
  const reactions = Object.values(message.reactions).filter(Boolean);
  row.append(make("footer", {},
    message.is_revoked ? null : acts(message),
    reactions.length ? make("span", { textContent: reactions.join(" ") }) : null,
    isTheirs && message.source === "app" ? make("span", { textContent: "do celular" }) : null,
    make("time", { textContent: clock(message.at) }),
    isTheirs ? ticks(message.ack) : null));
  return row;
}

function ticks(ack) {
  const [sign, name] = TICKS[ack] || ["?", "desconhecido"];
  const made = make("span", { className: "ticks", textContent: sign, title: name, data: { ack: String(ack) } });
  made.setAttribute("aria-label", name);
  return made;
}

function body(message) {
  const url = message.file && `control/files/${encodeURIComponent(here.session)}/${encodeURIComponent(message.file)}`;
  const parts = [];
  if (url && ["image", "sticker"].includes(message.kind)) parts.push(make("img", { src: url, alt: KINDS[message.kind] }));
  else if (url && ["video", "video_note"].includes(message.kind)) parts.push(make("video", { src: url, controls: true, preload: "metadata" }));
  else if (url && ["audio", "voice"].includes(message.kind)) parts.push(make("audio", { src: url, controls: true, preload: "metadata" }));
  else if (url) parts.push(make("p", {}, make("a", { href: url, download: message.filename || "arquivo", textContent: `📄 ${message.filename || "arquivo"}` })));
  else if (message.location) parts.push(make("p", { textContent: `📍 ${message.location.name || "Localização"} (${message.location.latitude}, ${message.location.longitude})` }));
  else if (message.vcards) parts.push(...message.vcards.map((card) => make("p", { textContent: `👤 ${cardLine(card)}` })));
  else if (message.poll) parts.push(pollBox(message));
  else if (KINDS[message.kind]) parts.push(make("p", { className: "gone", textContent: KINDS[message.kind] }));
  if (message.text) parts.push(make("p", { textContent: message.text }));
  if (message.mimetype && !url) parts.push(make("p", { className: "gone", textContent: "Arquivo indisponível" }));
  return parts;
}

function cardLine(card) {
  const name = /^FN[^:]*:(.*)$/m.exec(card)?.[1]?.trim();
  const numbers = [...card.matchAll(/^TEL[^:]*:(.*)$/gm)].map((found) => found[1].trim());
  return [name || "Contato", ...numbers].join(" · ");
}

function pollBox(message) {
  const options = make("div", { className: "options" },
    ...message.poll.options.map((option) => button(option, () => act(() => write({ type: "vote", target: message.id, options: [option] })))));
  return make("div", {}, make("strong", { textContent: message.poll.name }), options);
}

function acts(message) {
  const row = make("span", { className: "acts" }, button("Responder", () => quote(message), "Responder citando"));
  for (const emoji of EMOJIS) row.append(button(emoji, () => act(() => write({ type: "reaction", target: message.id, text: emoji })), `Reagir com ${emoji}`));
  if (Object.values(message.reactions).some(Boolean)) row.append(takeBack(message));
  if (!message.from_me && message.kind === "text") row.append(button("Editar", () => edit(message)));
  if (!message.from_me) row.append(button("Apagar", () => act(() => write({ type: "revoke", target: message.id }))));
  return row;
}

function takeBack(message) {
  const isPoll = Boolean(message.poll);
  const fields = isPoll ? { type: "vote", options: [] } : { type: "reaction", text: "" };
  return button(isPoll ? "Tirar voto" : "Tirar reação", () => act(() => write({ ...fields, target: message.id })));
}

function edit(message) {
  const text = prompt("Novo texto da mensagem", message.text || "");
  if (text) act(() => write({ type: "edit", target: message.id, text }));
}

// -- writing --

/** As the contact whose chat is open, as a member of the group, or as the owner of the account. */
function write(fields) {
  const form = $("composer").elements;
  if (form.as.value === "owner") return ask("POST", "phone-sends", { session: here.session, to: here.chat, acks: true, ...fields });
  const isLid = here.chat.endsWith("@lid");
  const known = here.messages.find((message) => !message.from_me && message.push_name);
  const sender = isGroup(here.chat) ? form.who.value : isLid ? here.phones?.[here.chat] : digits(here.chat);
  if (!sender) throw new Error("o telefone por trás deste LID não é conhecido");
  const where = isGroup(here.chat) ? { chat_id: here.chat } : { lid: isLid, push_name: known?.push_name };
  return ask("POST", "inbound", { session: here.session, from: sender, ...where, ...fields });
}

function quote(message) {
  here.quote = message;
  $("quote").hidden = !message;
  $("quote").firstElementChild.textContent = message ? message.text || KINDS[message.kind] || "" : "";
  if (message) $("composer").elements.text.focus();
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Error("o arquivo não pôde ser lido"));
    reader.readAsDataURL(file);
  });
}

async function composed() {
  const form = $("composer").elements;
  const type = form.type.value;
  const text = form.text.value;
  const fields = { type };
  if (here.quote) fields.reply_to = here.quote.id;
  if (type === "text") {
    if (!text.trim()) throw new Error("escreva uma mensagem");
    fields.text = text;
  } else if (UPLOADS.has(type)) {
    if (text) fields.text = text;
    const file = form.file.files[0];
    if (file) Object.assign(fields, { data: await base64(file), mimetype: file.type || "application/octet-stream", filename: file.name });
  } else if (type === "location") {
    Object.assign(fields, { latitude: -23.5505, longitude: -46.6333, name: text || "São Paulo" });
  } else if (type === "contact") {
    fields.contacts = [{ name: text || "Bruno", phone: "5511977770001" }];
  } else if (type === "poll") {
    const [name, ...options] = (text || "Qual dia?\nSábado\nDomingo").split("\n").filter(Boolean);
    if (options.length < 2) throw new Error("na enquete, escreva a pergunta e cada opção numa linha");
    Object.assign(fields, { name, options });
  }
  return fields;
}

$("composer").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = $("composer").elements;
  if (await act(async () => write(await composed()))) {
    form.text.value = "";
    form.file.value = "";
    form.type.value = "text";
    $("file").hidden = true;
    quote(null);
    toEnd();
  }
});
$("composer").elements.text.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && $("composer").elements.type.value !== "poll") {
    event.preventDefault();
    $("composer").requestSubmit();
  }
});
$("composer").elements.type.addEventListener("change", (event) => { $("file").hidden = !UPLOADS.has(event.target.value); });
$("quote").lastElementChild.addEventListener("click", () => quote(null));
$("mark-read").addEventListener("click", () => act(() => ask("POST", "reads", { session: here.session, chat_id: here.chat })));

$("scan").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = event.target.elements;
  act(() => ask("POST", `sessions/${encodeURIComponent(here.session)}/scan`, { phone: form.phone.value, push_name: form.push_name.value }));
});
$("new-chat").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target.elements;
  const sent = await act(() => ask("POST", "inbound", { session: here.session, from: form.phone.value, text: form.text.value, push_name: form.push_name.value, lid: form.lid.checked }));
  if (sent) $("new-chat").hidden = true;
});
$("new-chat-open").addEventListener("click", () => { $("new-chat").hidden = false; $("new-chat").elements.phone.focus(); });
$("new-chat-close").addEventListener("click", () => { $("new-chat").hidden = true; });

const DEEDS = { drop: ["drop", {}], outage: ["drop", { stay: true }], restore: ["restore", {}], unlink: ["unlink", {}], restrict: ["restrict", {}] };
for (const found of document.querySelectorAll("[data-act]")) {
  const [path, sent] = DEEDS[found.dataset.act];
  found.addEventListener("click", () => act(() => ask("POST", `sessions/${encodeURIComponent(here.session)}/${path}`, sent)));
}
$("lift").addEventListener("click", () => act(() => ask("DELETE", `sessions/${encodeURIComponent(here.session)}/restrict`)));
$("restart").addEventListener("click", () => act(() => ask("POST", "restart", {})));
for (const found of document.querySelectorAll(".back")) found.addEventListener("click", () => history.back());

// -- going on --

let lost = false;
async function refresh() {
  try {
    const state = await ask("GET", "state?brief=true");
    here.sessions = state.sessions;
    const waiting = state.webhooks.pending;
    $("server").textContent = `WAHA ${state.version} · ${state.book} mensagens enviadas · ${waiting} webhooks a caminho`;
    if (!session()) here.session = here.sessions.length === 1 ? here.sessions[0].name : null;
    const chosen = here.session && encodeURIComponent(here.session);
    const [chats, messages] = await Promise.all([
      chosen ? ask("GET", `chats?session=${chosen}`) : { chats: [], phones: {} },
      chosen && here.chat ? ask("GET", `messages?session=${chosen}&chat_id=${encodeURIComponent(here.chat)}`) : [],
    ]);
    Object.assign(here, { chats: chats.chats, phones: chats.phones, messages });
    lost = false;
  } catch (error) {
    if (!lost) say(`O simulador não responde: ${error.message}`);
    lost = true;
    return;
  }
  drawSessions();
  drawSession();
  drawChats();
  drawConversation();
}

async function watch() {
  if (!document.hidden) await refresh();
  setTimeout(watch, EVERY_MS);
}
watch();
